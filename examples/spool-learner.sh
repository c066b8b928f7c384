#!/bin/sh
# A learner that is a shell script: dl-spool(5) with sh, coreutils, awk and
# filters. It takes the newest model from the spool, trains it for a while, puts
# what has changed there as pushes, and begins again with the next version, until
# the run ends. A syncer has to come by now and then: `dl-sync run SPOOL`.
#
#	examples/spool-learner.sh spool name config.json text ...
#
# config.json is the model's; STEPS (24) inner steps of BATCH (12) sequences are
# made between two looks at the spool, SLOT (0) says which samples are its own.
# dl-learn dir:SPOOL does the same without standing still between the steps.
set -eu

[ $# -ge 4 ] || {
	echo 'usage: spool-learner.sh spool name config.json text ...' >&2
	exit 64
}
spool=$1 name=$2 config=$3
shift 3
steps=${STEPS:-24} batch=${BATCH:-12}
context=$(sed -n 's/.*"max_position_embeddings": *\([0-9]*\).*/\1/p' "$config")
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
trap 'say leaving; exit 1' INT TERM

key() { # word [file]: its value in global/latest, as it was taken
	sed -n "s/^# $1 //p" "${2:-$here/latest}"
}

# Files appear whole: written in tmp/, synced, renamed; the folder too is synced.
put() { # file, path in the spool
	cp "$1" "$spool/tmp/$name.sh"
	sync "$spool/tmp/$name.sh"
	mv "$spool/tmp/$name.sh" "$spool/$2"
	sync "$(dirname "$spool/$2")"
}

# What this learner says of itself; the syncer must know of the steps before it
# sees the pushes made of them.
say() { # state
	{
		echo '# dl-spool 1'
		echo "# instance $instance"
		echo "# clock $clock"
		echo "# steps $own_steps"
		echo "# tokens $((own_steps * batch * context))"
		echo "# loss $loss"
		echo "# state $1"
		echo "# layout $(key layout)"
		printf '#fragment\tversion\n'
		awk '/^[0-9]/ { print $1 "\t" $2 }' "$here/latest"
	} >"$here/said"
	put "$here/said" "learner/$name"
}

# To the syncer an instance is one life of a learner, whose pushes of a fragment
# are numbered from 1. When epoch has risen, the syncer may have lost what it
# answered: what is in the folder is left to it, and a new life begins.
begin() {
	instance=$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')
	epoch=$(key epoch)
	clock=$(key clock) # from here on its own steps, and rounds that wait
	own_steps=0
	loss=nan
	seq=0 # every turn of this script makes a push a fragment
	say training
}

# The newest version of every fragment. A file that is missing, or whose hash is
# another, is not there yet, or was replaced meanwhile: look again.
take() {
	until cp "$spool/global/latest" "$here/latest" 2>/dev/null &&
		fetch 2>/dev/null; do
		sleep 1
	done
	dl-join -l "$spool/layout.tsv" -o "$here/base.safetensors" \
		"$here"/global.*
}

fetch() {
	rm -f "$here"/global.*
	awk '/^[0-9]/ { print $1, $2, $4 }' "$here/latest" |
		while read -r p version hash; do
			cp "$spool/global/$p.$version" "$here/global.$p" || exit 1
			[ "$(sum "$here/global.$p")" = "$hash" ] || exit 1
		done
}

sum() {
	b2sum -l 256 "$1" | cut -d ' ' -f 1
}

# A round that waits for this learner has a clock to reach.
jump() {
	for round in "$spool"/open/*; do
		grep -qsx "$name" "$round" || continue
		step=${round##*/}
		step=${step%.*}
		[ "$clock" -ge "$step" ] || clock=$step
	done
}

train() {
	dl-train run -q -b "$batch" --steps "$steps" --warmup 1 -s "$seq" \
		--slot "${SLOT:-0}" --config "$config" \
		-o "$here/new.safetensors" "$here/base.safetensors" "$@"
	own_steps=$((own_steps + steps))
	clock=$((clock + steps))
	loss=$(dl-train eval -q --config "$config" "$here/new.safetensors" "$@" |
		awk '!/^#/ { print $2 }')
}

# A push a fragment: new values minus those that it began with.
push() {
	seq=$((seq + 1))
	awk '/^[0-9]/ { print $1, $2 }' "$here/latest" |
		while read -r p version; do
			dl-frag diff -l "$spool/layout.tsv" -p "$p" \
				-m dl.kind=push -m dl.codec=f32 \
				-m dl.run="$(key run)" \
				-m dl.learner="$name" \
				-m dl.instance="$instance" -m dl.seq="$seq" \
				-m dl.step="$clock" -m dl.base="$version" \
				-m dl.steps="$steps" \
				-m dl.tokens=$((steps * batch * context)) \
				-o "$here/push" "$here/base.safetensors" \
				"$here/new.safetensors"
			put "$here/push" \
				"new/$name/$clock.$p.$seq.$(sum "$here/push")"
		done
}

# Every push has been answered; one that is not in a round is not waited for.
is_answered() {
	[ "$(sed -n 's/^# instance //p' "$spool/taken/$name" 2>/dev/null)" = \
		"$instance" ] && awk -v seq="$seq" '
		/^[0-9]/ && ($2 < seq || ($4 == "round" && $3 < seq)) { n++ }
		END { exit n > 0 }' "$spool/taken/$name"
}

# Until the rounds of the last pushes are merged, or the run changes. Meanwhile
# it shows life.
wait_for_answer() {
	cp "$here/latest" "$here/now"
	until is_answered || [ "$(key state "$here/now")" != running ] ||
		[ "$(key epoch "$here/now")" != "$epoch" ]; do
		sleep "${POLL:-1}"
		say training
		cp "$spool/global/latest" "$here/now"
	done
}

[ -d "$spool/new/$name" ] || mkdir "$spool/new/$name"
take
begin
while [ "$(key state)" = running ]; do
	jump
	train "$@"
	say training
	push
	wait_for_answer
	take
	[ "$(key epoch)" = "$epoch" ] || begin
done
say drained
until [ "$(key state)" = final ] || [ "$(key state)" = "done" ]; do
	sleep "${POLL:-1}"
	take
done
say leaving
