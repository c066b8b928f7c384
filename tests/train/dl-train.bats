#!/usr/bin/env bats
# The program dl-train on a model small enough to train in a moment.

setup() {
	cd "$BATS_TEST_TMPDIR"
	unset DL_TRAINER DL_LAYOUT DL_SEED DL_SLOT
	for i in $(seq 400); do
		echo "$i bottles, and if one of them falls: $((i * i % 97)) left."
	done >text
	dl-train init -q -L 2 -H 2 -K 1 -d 16 -c 16 -s 3 m
}

train() {
	dl-train run -q -b 4 --warmup 10 -s 5 "$@"
}

differ() {
	run cmp "$1" "$2"
	[ "$status" -eq 1 ]
}

held_out() {
	dl-train eval "$1" text | tail -n 1 | cut -f 2
}

@test "init writes a folder with a model and its configuration" {
	[ -s m/model.safetensors ]
	grep -q '"num_key_value_heads": 1,' m/config.json
	grep -q '"intermediate_size": 48,' m/config.json
	grep -q '"rms_norm_eps": 1e-05,' m/config.json
}

@test "init is a function of its seed" {
	dl-train init -q -L 2 -H 2 -K 1 -d 16 -c 16 -s 3 same
	dl-train init -q -L 2 -H 2 -K 1 -d 16 -c 16 -s 4 other
	cmp m/model.safetensors same/model.safetensors
	differ m/model.safetensors other/model.safetensors
}

@test "init replaces a model only when told to" {
	cp m/model.safetensors before
	run dl-train init -q -L 1 -H 2 -d 16 -c 16 m
	[ "$status" -eq 73 ]
	[[ "$output" == *"m/model.safetensors: is there already"* ]]
	cmp before m/model.safetensors
	dl-train init -qf -L 1 -H 2 -d 16 -c 16 m
	differ before m/model.safetensors
}

@test "a new model knows nothing, a trained one something" {
	train --steps 200 -o trained m text
	run held_out m
	[ "${output%.*}" -ge 5 ]
	run held_out trained
	[ "${output%.*}" -le 2 ]
}

@test "a signal ends a run after the step in hand, and all is kept" {
	dl-train run -b 4 --steps 1000000 --step-time 5ms --save state -o a \
		m text 2>log &
	until grep -q 'step 1 of 1000000' log; do sleep 0.05; done
	kill $!
	wait $!
	[ -s state ]
	# The state's clock is beyond 1 step, so nothing is left to do.
	train --steps 1 --resume state -o b m text
	cmp a/model.safetensors b/model.safetensors
}

@test "a saved state goes on where it was" {
	train --steps 20 --save state -o a m text
	train --steps 40 --resume state --save more -o b m text
	differ a/model.safetensors b/model.safetensors
	train --steps 20 --resume state --save same -o c m text
	cmp state same
}

@test "threads share the work and give the same bits twice" {
	train --steps 20 -t 3 -o a m text
	train --steps 20 -t 3 -o b m text
	cmp a/model.safetensors b/model.safetensors
	train --steps 20 -t 1 -o c m text
	[ "$(held_out a | cut -c 1-4)" = "$(held_out c | cut -c 1-4)" ]
}

@test "seed and slot choose the samples" {
	train --steps 3 -o a m text
	train --steps 3 --slot 1 -o b m text
	DL_SLOT=1 train --steps 3 -o c m text
	differ a/model.safetensors b/model.safetensors
	cmp b/model.safetensors c/model.safetensors
}

@test "a budget in tokens is one in steps" {
	train --steps 3 -o a m text
	train --tokens 150 -o b m text
	cmp a/model.safetensors b/model.safetensors
}

@test "eval reads a model from standard input" {
	dl-train eval --config m/config.json - text <m/model.safetensors >a
	dl-train eval m text >b
	dl-train eval m/model.safetensors text >c
	cmp a b
	cmp a c
	run dl-train eval - text <m/model.safetensors
	[ "$status" -eq 64 ]
	cp m/model.safetensors alone
	run dl-train eval alone text
	[ "$status" -eq 66 ]
	[[ "$output" == *"alone: no config.json"*"--config"* ]]
}

@test "eval predicts each held-out token but the first once" {
	run dl-train eval --hold-out 1 m text
	[ "$(echo "$output" | tail -n 1 | cut -f 1)" -eq \
		$(($(wc -c <text) - 1)) ]
}

@test "sample writes text, the same for the same seed" {
	dl-train sample -n 50 -p ab m >a
	dl-train sample -n 50 -p ab m >b
	dl-train sample -n 50 -p ab -s 1 m >c
	[ "$(head -c 2 a)" = ab ]
	[ "$(wc -c <a)" -eq 53 ]
	cmp a b
	differ a c
}

@test "tokens are 16 bits wide when the vocabulary asks for it" {
	dl-train init -q -L 1 -H 1 -d 8 -c 8 --vocab 300 wide
	printf '\001\001%.0s' $(seq 100) >ids
	train --steps 2 -o w wide ids
	run dl-train eval w ids
	[[ "$output" == *nats/token* ]]
	printf '\054\001' >>ids
	run train --steps 2 -o w wide ids
	[ "$status" -eq 65 ]
	[[ "$output" == *"token 100 of the data is 300"* ]]
	printf 'x' >>ids
	run train --steps 2 -o w wide ids
	[ "$status" -eq 65 ]
	[[ "$output" == *"odd number"* ]]
}

@test "data without an end are refused" {
	truncate -s 15T huge
	# So that a fault here does not take the machine's memory; programs
	# built with sanitizers cannot start so small.
	if (ulimit -v 4000000 && dl-train -V) >/dev/null 2>&1; then
		ulimit -v 4000000
	fi
	for data in /dev/zero /dev/full; do
		run dl-train eval m "$data"
		[ "$status" -eq 65 ]
		[[ "$output" == *"$data: neither a file nor a pipe"* ]]
	done
	run dl-train eval m text huge
	[ "$status" -eq 65 ]
	[[ "$output" == *"huge: more data than"* ]]
	run dl-train eval m <(cat text)
	[ "$status" -eq 0 ]
}

@test "one of several processes does not train alone" {
	cp "$(command -v dl-train)" lone
	run env PMI_SIZE=2 ./lone run -q --steps 1 -o x m text
	[ "$status" -eq 69 ]
	[[ "$output" == *"one of several processes"*"built without MPI"* ]]
	[ ! -e x ]
	PMI_SIZE=1 ./lone run -q --steps 1 -o x m text
}

@test "what does not fit is refused" {
	run dl-train init -q -H 3 x
	[ "$status" -eq 65 ]
	[ ! -e x ]
	dl-train init -q -L 2 -H 2 -d 16 -c 16 other
	run train --steps 1 -o x --config other/config.json m text
	[ "$status" -eq 65 ]
	[[ "$output" == *k_proj* ]]
	sed -i 's/"silu"/"gelu"/' other/config.json
	run train --steps 1 -o x other text
	[ "$status" -eq 65 ]
	[[ "$output" == *hidden_act* ]]
	# What could not be kept is not trained.
	run train --steps 1 -o nowhere/x.safetensors m text
	[ "$status" -eq 73 ]
	[[ "$output" != *"step 1"* ]]
	mkdir folder
	run train --steps 1 --save folder m text
	[ "$status" -eq 73 ]
	[[ "$output" == *"folder: is a folder"* ]]
	head -c 10 text >short
	run train --steps 1 -o x m short
	[ "$status" -eq 65 ]
	run train --steps 1 -o x m nothing
	[ "$status" -eq 66 ]
	run train --steps 1 -o x --resume m/model.safetensors m text
	[ "$status" -eq 65 ]
	run train --steps 1 m text
	[ "$status" -eq 64 ]
	run train --steps 1 --tokens 5 -o x m text
	[ "$status" -eq 64 ]
	[ ! -e x ]
}
