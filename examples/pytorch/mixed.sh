#!/bin/sh
# How well do two learners of train_lm.py and two of dl-train train a model
# together, and how well four of dl-train, on as many tokens? Prints the losses
# on held-out text, in nats a byte.
#
#	mixed.sh text [steps [step-time]]
#
# Steps are of each learner, of 12 sequences; dl-train takes that time for each,
# so that train_lm.py can keep up.
set -eu

text=$1
steps=${2:-500}
pace=${3:-300ms}
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
run=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$run"' EXIT
trap 'exit 1' INT TERM

learn() { # name, slot, command...
	name=$1
	slot=$2
	shift 2
	dl-learn -q -n "$name" --slot "$slot" "unix:$run/sock" -- "$@" \
		"$run/start" "$text" 2>"$run/$name.log" &
	learners="$learners $!"
}

plain() {
	learn "$1" "$2" dl-train run -q --steps "$steps" --step-time "$pace"
}

torch() {
	learn "$1" "$2" "$python" "$here/train_lm.py" --steps "$steps"
}

loss() { # model
	dl-train eval -q --config "$run/start/config.json" "$1" "$text" |
		awk -F '\t' '!/^#/ { print $2 }'
}

# A run of two plain learners and two of that kind.
train() { # kind
	rm -rf "$run/store" "$run/tape"
	dl-sync serve -q --store "$run/store" --listen "unix:$run/sock" \
		--tokens $((4 * steps * 12 * context)) --tape "$run/tape" \
		-o "$run/$1.safetensors" "$run/start" &
	syncer=$!
	learners=
	plain ash 0
	plain birch 1
	"$1" cedar 2
	"$1" elm 3
	for p in $learners $syncer; do
		wait "$p"
	done
	dl-stat "$run/tape"
}

context=64
dl-train init -q -L 4 -H 4 -d 128 -c $context -s 1 "$run/start"
train torch
train plain
printf 'before\t%s\n' "$(loss "$run/start")"
printf 'mixed\t%s\n' "$(loss "$run/torch.safetensors")"
printf 'dl-train\t%s\n' "$(loss "$run/plain.safetensors")"
