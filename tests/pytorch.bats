#!/usr/bin/env bats
# examples/pytorch: the first two tests run where there is a PyTorch, the others
# with DL_TORCH=1, since each of its imports takes seconds.

setup() {
	export PYTHONDONTWRITEBYTECODE=1
	export pytorch=$abs_top_srcdir/examples/pytorch
	# Debian's is for Debian's Python.
	for python in python3 /usr/bin/python3 ''; do
		"$python" -c 'import importlib.util as i; i.find_spec("torch").name' \
			2>/dev/null && break
	done
	[ -n "$python" ] || skip "there is no PyTorch"
	cd "$BATS_TEST_TMPDIR"
	seq 2000 | sed 's/.*/& bottles of beer on the wall/' >text
	learners=()
}

teardown() {
	local p
	for p in "${learners[@]}" ${syncer:-}; do
		kill "$p" 2>/dev/null || true
	done
}

at_length() {
	[ -n "${DL_TORCH:-}" ] || skip "takes its time: DL_TORCH=1"
}

# serve OPTION... MODEL
serve() {
	dl-sync serve -q --store store --listen unix:s -H 12 --fragments 2 \
		--tape tape -o out.safetensors "$@" 3>&- &
	syncer=$!
}

# learn NAME COMMAND...
learn() {
	local name=$1
	shift
	dl-learn -q -n "$name" unix:s -- "$@" 2>"$name.log" 3>&- &
	learners+=($!)
}

finish() {
	local p
	for p in "${learners[@]}" "$syncer"; do
		wait "$p"
	done
}

# The run ends once each of these has pushed four times: they may begin many
# seconds apart.
end_after() {
	local name
	for name; do
		until [ "$(grep -c "\"push\".*\"$name\"" tape)" -ge 4 ]; do
			sleep 0.2
		done
	done
	dl-sync end unix:s
	finish
}

# held_out MODEL...: by dl-train.
held_out() {
	dl-train eval "$@" text | tail -n 1 | cut -f 2
}

less() {
	echo "$1 < $2"
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

near() { # a, b, how far
	echo "$1 $2"
	awk -v a="$1" -v b="$2" -v d="$3" \
		'BEGIN { exit !(a - b < d && b - a < d) }'
}

@test "each order, on models whole and partial" {
	"$python" "$abs_top_srcdir/tests/pytorch/trainer_test.py"
}

@test "dl-train and train_lm.py agree on a model" {
	dl-train init -q -L 2 -H 4 -K 2 -d 32 -c 32 start
	dl-train run -q --steps 30 -o trained start text
	theirs=$("$python" "$pytorch/train_lm.py" --eval trained text)
	near "$(held_out trained)" "$theirs" 1e-4
}

@test "two learners beside two of dl-train" {
	at_length
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	serve start
	for name in ann ben; do
		learn $name dl-train run -q -b 4 --step-time 50ms start text
	done
	for name in cid dee; do
		learn $name "$python" "$pytorch/train_lm.py" -b 4 start text
	done
	end_after ann ben cid dee
	cat cid.log
	grep 'dl_trainer: .* steps in .* between steps' cid.log
	less "$(held_out --config start/config.json out.safetensors)" \
		"$(held_out start)"
}

# checks OPTION...: train_lm.py with these breaks no rule.
checks() {
	head -n 200 text >some
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	run dl-learn --check --step-timeout 10m start -- \
		"$python" "$pytorch/train_lm.py" "$@" -b 2 start some
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c $'\tok$' <<<"$output")" -eq 21 ]
}

@test "--check is content" {
	at_length
	checks
}

@test "--check is content with a model in BF16" {
	at_length
	checks --bf16 --warmup 1 --lr 0.05
}

@test "a model in BF16 learns beside one in F32" {
	at_length
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	serve start
	learn ann dl-train run -q -b 4 --step-time 50ms start text
	learn ben "$python" "$pytorch/train_lm.py" --bf16 -b 4 start text
	end_after ann ben
	less "$(held_out --config start/config.json out.safetensors)" \
		"$(held_out start)"
}

@test "two processes of torchrun are one learner" {
	at_length
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	torchrun=("$python" -m torch.distributed.run --standalone
		--nproc_per_node 2)
	# Of Python 3.11, torchrun 1.13 does not understand what it has unless
	# asked: that nothing is redirected.
	torchrun+=(-r 0:1 -t 0:1)
	export TMPDIR=$BATS_TEST_TMPDIR
	dl-frag plan -n 2 start >layout.tsv
	steps=("$python" -S "$abs_top_srcdir/tests/pytorch/steps.py" start
		layout.tsv 4)
	lm=("$pytorch/train_lm.py" --warmup 1 -b 4 start text)
	"${steps[@]}" "$python" "${lm[@]}" >one
	"${steps[@]}" "${torchrun[@]}" "${lm[@]}" >two
	paste one two
	[ "$(wc -l <one)" -eq 4 ]
	paste one two | awk '{ d = $3 - $6; if (d * d > 1e-8 || $2 != $5) exit 1 }'
	serve start
	learn ann "${torchrun[@]}" "${lm[@]}"
	end_after ann
	[ "$(grep -c 'dl_trainer: .* steps in' ann.log)" -eq 1 ]
}

@test "adapters beside a frozen model" {
	at_length
	lm=("$python" "$pytorch/train_lm.py")
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	"${lm[@]}" --lora lora.safetensors --rank 2 start
	serve lora.safetensors
	for name in ann ben; do
		learn $name "${lm[@]}" --lora lora.safetensors --lr 0.03 \
			--warmup 1 -b 4 start text
	done
	end_after ann ben
	# The run is of these alone, 16 numbers wide, 2 high, 4 of them.
	[ "$(dl-frag show out.safetensors | grep -vc '^#')" -eq 4 ]
	less "$("${lm[@]}" --lora out.safetensors --eval start text)" \
		"$("${lm[@]}" --eval start text)"
}

# Each digit is one row of ink, and some noise.
draw_digits() {
	awk 'BEGIN {
		for (i = 0; i < 600; i++) {
			for (p = 0; p < 64; p++)
				printf "%d,", (int(p / 8) == i % 8) * 12 + i * p % 5
			print i % 8
		}
	}' >digits.csv
}

# better_than_half OPTION...: as train_digits.py --eval has it.
better_than_half() {
	run "$python" "$pytorch/train_digits.py" "$@" --eval out.safetensors \
		digits.csv
	echo "$output"
	less 0.5 "${output%% *}"
}

@test "pictures, and what batches are normalized by" {
	at_length
	draw_digits
	digits=("$python" "$pytorch/train_digits.py")
	"${digits[@]}" --init start.safetensors
	serve start.safetensors
	for name in ann ben; do
		learn $name "${digits[@]}" digits.csv
	done
	end_after ann ben
	better_than_half
}

@test "the last layer alone, on a frozen trunk" {
	at_length
	draw_digits
	digits=("$python" "$pytorch/train_digits.py")
	"${digits[@]}" --init trunk.safetensors
	dl-frag plan --skip '[0-7].*' trunk.safetensors >layout.tsv
	serve --layout layout.tsv trunk.safetensors
	for name in ann ben; do
		learn $name "${digits[@]}" --trunk trunk.safetensors digits.csv
	done
	end_after ann ben
	dl-frag show out.safetensors | grep -v '^#' | cut -f 1 | sort >names
	diff names <(printf '8.bias\n8.weight\n')
	better_than_half --trunk trunk.safetensors
}

@test "digits.sh" {
	at_length
	draw_digits
	PYTHON=$python "$pytorch/digits.sh" digits.csv 1 20000 >table
	cat table
	[ "$(grep -vc '^#' table)" -eq 2 ]
	tail -n 1 table | grep -q '^mean'
}
