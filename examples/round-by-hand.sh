#!/bin/sh
# One round of Decoupled DiLoCo without any daemon: learners train apart, what
# they changed is cut into fragments, squeezed to four bits a value, merged by
# radial averaging and weight of tokens, and joined to one better model. All of
# it is files and pipes, so each line could run on another machine.
#
#	examples/round-by-hand.sh [folder]
#
# The text is the manual of these programs, or the files that ROUND_TEXT names.
# The exit status is 0 only if the merged model is better than the one before.
set -eu

text=${ROUND_TEXT:-$(cd "$(dirname "$0")/.." && echo "$PWD"/man/*.[1-8])}
steps=60 # of each learner, before it pushes
batch=8
context=32

# Held-out loss of a model, in nats a byte.
loss() {
	# shellcheck disable=SC2086 # text is a list of files
	dl-train eval -q --config start/config.json "$1" $text |
		awk -F '\t' '!/^#/ { print $2 }'
}

mkdir -p "${1:-round}"
cd "${1:-round}"

# Before the round: a model, the plan of its fragments, and the fragments.
dl-train init -qf -L 2 -H 2 -d 32 -c $context start
dl-frag plan -n 4 start >layout.tsv
dl-frag split -l layout.tsv start >base.frag

# Each learner trains on samples of its own, and pushes what that changed. The
# push says who made it, and how much work is in it.
slot=0
for learner in ash birch cedar; do
	# shellcheck disable=SC2086
	dl-train run -q -b $batch --steps $steps --warmup 10 --slot $slot \
		-o $learner.safetensors start $text
	dl-frag diff -l layout.tsv -m dl.learner=$learner \
		-m dl.steps=$steps -m dl.tokens=$((steps * batch * context)) \
		start $learner.safetensors |
		dl-quant -c int4 >$learner.push
	slot=$((slot + 1))
done

# The syncer's part: merge, and one outer step. The momentum is kept for the
# next round, whose base is this round's new.frag.
rm -f momentum
cat ./*.push | dl-sync merge -v -l layout.tsv -s momentum base.frag - >new.frag

# Everybody takes the new model.
dl-join -l layout.tsv -o merged.safetensors new.frag

before=$(loss start/model.safetensors)
merged=$(loss merged.safetensors)
full=$(dl-frag diff -l layout.tsv start cedar.safetensors | wc -c)
echo "a push: $(wc -c <cedar.push) bytes, $full in f32"
echo "held-out loss: $before before, $merged merged;" \
	"alone: $(loss ash.safetensors), $(loss birch.safetensors)," \
	"$(loss cedar.safetensors)"
awk "BEGIN { exit !($merged < $before) }"
