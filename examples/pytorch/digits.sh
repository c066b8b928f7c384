#!/bin/sh
# What part of the digits do four learners know, and what part one process that
# has seen as many pictures? A line a seed, and the means.
#
#	digits.sh data [seeds [pictures]]
set -eu

data=$1
seeds=${2:-10}
pictures=${3:-64000}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
run=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$run"' EXIT
trap 'exit 1' INT TERM

digits() {
	"$python" "$here/train_digits.py" "$@" "$data"
}

known() {
	sed 's/ .*//'
}

# The model of that seed, by four learners with data of their own.
four() {
	dl-sync serve -q --store "$run/store" --listen "unix:$run/sock" \
		--tokens "$pictures" --tape "$run/tape" \
		-o "$run/final.safetensors" "$run/start.safetensors" &
	syncer=$!
	learners=
	for slot in 0 1 2 3; do
		dl-learn -q -n "learner$slot" --slot $slot -s "$1" \
			"unix:$run/sock" -- "$python" "$here/train_digits.py" \
			"$data" >"$run/log$slot" 2>&1 &
		learners="$learners $!"
	done
	for p in $learners $syncer; do
		wait "$p"
	done
}

# How many pictures all of them have seen.
seen() {
	dl-stat --tsv "$run/tape" | awk -F '\t' '
		sub(/^# /, "") { for (i = 1; i <= NF; i++) at[$i] = i }
		$1 == "*" { print $at["tokens"] }'
}

for seed in $(seq "$seeds"); do
	rm -rf "${run:?}"/*
	digits --seed "$seed" --init "$run/start.safetensors"
	four "$seed"
	tokens=$(seen)
	a=$(digits --eval "$run/final.safetensors" | known)
	b=$(DL_SEED=$seed digits --seed "$seed" --steps $((tokens / 32)) | known)
	printf '%s\t%s\t%s\t%s\n' "$seed" "$tokens" "$a" "$b"
done | awk -F '\t' '
	BEGIN { print "# seed\tpictures\tfour\tone" }
	{ print; fflush(); n++; pictures += $2; four += $3; one += $4 }
	END { printf "mean\t%d\t%.4f\t%.4f\n", pictures / n, four / n, one / n }'
