#!/bin/sh
# Plans a run before its machines are rented: what to choose, what it will come
# to, and the commands that start it. Say what there is:
#
#	CHIPS=4096 SLICE=64 INTERRUPTED=90d RETURN=30m MODEL=1.3G STEP=2s \
#		LINK=10Gbit DELAY=20ms SITES=3 examples/plan-a-run.sh [folder]
#
# The tables stay in the folder, with tabs.
set -eu

chips=${CHIPS:-4096}              # of all sites
slice=${SLICE:-64}                # chips that come and go together
interrupted=${INTERRUPTED:-90d}   # mean time between a chip's interruptions
return=${RETURN:-30m}             # until it is there again
model=${MODEL:-1.3G}              # values
step=${STEP:-2s}                  # time of an inner step
link=${LINK:-10Gbit}              # of each site, each way
delay=${DELAY:-20ms}              # of a message between sites, each way
sites=${SITES:-3}

out=${1:-plan}
mkdir -p "$out"

# What dl-sim says, for eyes, and in the table NAME for what follows.
ask() { # name, job, option...
	name=$1
	shift
	printf '\n=== dl-sim %s\n\n' "$*"
	dl-sim "$@"
	dl-sim "$@" --tsv >"$out/$name.tsv"
}

# A column of the first line of a table.
first() { # name, column
	awk -F '\t' -v column="$2" '
		sub(/^# /, "") { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ print $at[column]; exit }' "$out/$1.tsv"
}

machines="--slice $slice --interrupted $interrupted --return $return"
traffic="--model $model --delay $delay"

# shellcheck disable=SC2086 # these are options
ask plan plan --chips "$chips" $machines $traffic -t "$step" --link "$link" \
	--sites "$sites"
m=$(first plan learners)
k=$(first plan quorum)
p=$(first plan fragments)
h=$(first plan h)
tau=$(first plan tau)
push=$(first plan push)

# What as many chips come to in one piece, in several runs for the errors.
# shellcheck disable=SC2086
ask goodput goodput --chips "$chips" -m "$m" -k "$k" $machines -t "$step" -r 5

# Several learners of a site share its link; others have it for themselves.
[ "$m" -ge "$sites" ] || sites=$m
# shellcheck disable=SC2086
ask bandwidth bandwidth $traffic --sites "$sites" -m $(((m + sites - 1) / sites)) \
	--push "$push" -n "$p" -H "$h" --tau "$tau" -t "$step" --link "$link"

cat <<END

=== The run

dl-frag plan -n $p model.safetensors >layout.tsv
dl-sync serve --store store --listen tcp:0.0.0.0:7000 --layout layout.tsv \\
	-H $h --tau $tau --quorum $k --global $push model.safetensors
dl-learn --name NAME --push $push tcp:SYNCER:7000 -- TRAINER, $m times
END
