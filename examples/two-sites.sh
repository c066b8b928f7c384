#!/bin/sh
# A run in two data centres that share no folder and no port: each has a spool,
# and rsync carries what is new from one to the other and back. Syncer and
# learner ann are at the first, learner ben at the second. Runs in a moment, with
# the programs on PATH:
#
#	examples/two-sites.sh [folder]
#
# Here both are folders of one machine. In earnest the second one is
# dc2:/path/of/spool, and `carry` is a job in the crontab of the first: ssh and a
# key for rsync are all that it takes. The exit status is 0 only if every check
# that it prints holds.
set -eu
# shellcheck source=/dev/null
. "$(dirname "$0")/show.sh"

mkdir -p "${1:-two-sites-run}"
cd "${1:-two-sites-run}"
one=dc1 two=dc2
options='-H 8 --quorum 2 --steps 300' # the same in every pass

# What the syncer publishes goes to the second site. Files whose names are in
# latest are carried before latest, and each appears under its name only when it
# is whole; one that is too early is taken at the next look.
#
# What the learners of the second site say comes back. Their pushes are moved,
# since they are taken once, and are safe on the other disk before they go here.
# What a learner says of itself was copied before its pushes and is shown after
# them, so that it never speaks of a push that is still on its way. Texts are
# compared by content (-c): they change within a second, to the same size.
carry() {
	rsync -a --fsync --delete --exclude latest "$one/layout.tsv" \
		"$one/global" "$one/update" "$two/"
	rsync -ac --fsync "$one/global/latest" "$two/global/"
	rsync -ac --fsync --delete "$one/open" "$one/taken" "$two/"
	rsync -ac --fsync "$two/learner/" "$one/tmp/$two/"
	rsync -a --fsync --remove-source-files --exclude '.*' "$two/new" "$one/"
	rsync -ac --fsync "$one/tmp/$two/" "$one/learner/"
}

# As cron would, but more often.
now_and_then() { # command...
	while :; do
		"$@" >>"$1.log" 2>&1 || true
		sleep 0.2
	done
}

pass() {
	# shellcheck disable=SC2086 # a list
	dl-sync run $options -o final.safetensors "$one"
}

learn() { # name, spool
	dl-learn -n "$1" --poll 200ms "dir:$2" -- \
		dl-train run -q -b 4 --step-time 10ms start text 2>"$1.log" &
}

loss() { # model
	dl-train eval -q --config start/config.json "$1" text |
		awk -F '\t' '!/^#/ { print $2 }'
}

pids=
trap 'kill $pids 2>/dev/null || true' EXIT
trap 'exit 1' INT TERM

say '1. At the first site: a model, and a spool for its run'
seq 10000 | sed 's/.*/& bottles of beer on the wall/' >text
dl-train init -q -L 1 -H 2 -d 32 -c 32 -s 1 start
dl-frag plan -n 4 start >layout.tsv
first=0
# shellcheck disable=SC2086 # a list
dl-sync run --layout layout.tsv $options "$one" start 2>pass.log || first=$?
check 'the first pass finds nobody yet: 75' [ $first = 75 ]
ls "$one"

say '2. At the second: a spool of the same form, which is empty'
mkdir -p "$two/learner" "$two/new" "$two/tmp"
carry
ls "$two"

say '3. A learner at each, a syncer at the first, rsync in between'
learn ann "$one"
ann=$!
learn ben "$two"
ben=$!
now_and_then pass &
pids=$!
now_and_then carry &
pids="$pids $! $ann $ben"
check 'ann left with status 0' wait $ann
check 'ben left with status 0' wait $ben
# shellcheck disable=SC2086 # a list
kill $pids 2>/dev/null || true
wait
until grep -q 'state done' "$one/global/latest"; do # as both have left
	carry
	pass 2>>pass.log || sleep 0.2
done
carry

say '4. What came of it'
dl-stat "$one/store/tape"
rounds=$(dl-stat --tsv "$one/store/tape" | awk -F '\t' '
	sub(/^# /, "") { for (i = 1; i <= NF; i++) at[$i] = i }
	$1 == "ben" { print $at["rounds"] * $at["took-part"] }')
check "ben took part in $rounds rounds" awk "BEGIN { exit !($rounds > 0) }"
check 'no push was refused' [ -z "$(ls "$one/refused")" ]
check 'both sites have the same values' cmp "$one/global/latest" \
	"$two/global/latest"
before=$(loss start)
after=$(loss final.safetensors)
check "the model learned: $before, then $after nats a byte" \
	awk "BEGIN { exit !($after < $before) }"
finish
