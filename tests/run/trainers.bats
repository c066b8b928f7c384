#!/usr/bin/env bats
# Trainers that do not keep to dl-trainer(7): dl-learn --check finds each
# fault, and a run goes on in spite of it.

load run.bash

setup() {
	run_setup
	python=$(python3 -c 'import sys; print(sys.executable)')
	toy=("$python" -S "$abs_top_srcdir/tests/run/toy_trainer.py")
	"$python" -S "$abs_top_srcdir/tests/run/tiny_model.py"
}

teardown() {
	run_teardown
}

# faulty FAULT...: what --check says of a toy trainer with these faults, and
# that it is not content.
faulty() {
	local code=0

	dl-learn --check --scratch "$scratch" --stop-timeout 3s \
		--step-timeout "${silence:-60s}" tiny.safetensors -- \
		"${toy[@]}" "$@" >found || code=$?
	cat found
	[ "$code" -eq 1 ]
	[ -z "$(ls -A "$scratch")" ]
}

# finds RULE WHAT: that rule is said to be broken, in that way.
finds() {
	grep "^$1"$'\twrong: .*'"$2" found
}

@test "--check is content with dl-train and with a toy" {
	dl-learn --check --scratch "$scratch" m -- dl-train run -q -b 2 m text \
		>found
	[ "$(grep -c $'\tok$' found)" -eq 21 ]
	dl-frag plan -n 1 tiny.safetensors >one.tsv
	dl-learn --check --layout one.tsv --scratch "$scratch" \
		tiny.safetensors -- "${toy[@]}" >found
	cat found
	[ "$(grep -c $'\tok$' found)" -eq 21 ]
	[ "$(wc -l <found)" -eq 22 ]
	[ -z "$(ls -A "$scratch")" ]
}

@test "--check is content with a trainer that refuses what it may" {
	dl-learn --check --scratch "$scratch" tiny.safetensors -- \
		"${toy[@]}" refuses >found
	grep $'^save\trefused: trainer: save: cannot do that' found
	grep $'^export\trefused: ' found
	grep $'^import\tskipped: export is not ok' found
}

@test "--check finds orders that are obeyed wrongly" {
	faulty hums add blend more-tokens deaf forgets save import takes-half \
		takes-torn status end
	finds orders '"hum a-tune"'
	finds add '"w" holds -0.02'
	finds blend '"w" holds'
	finds damaged 'obeys apply 0 of half a file'
	finds tokens 'when the same step is made again'
	finds clock 'of clock 1007 are those of clock 7'
	finds keep 'it goes on otherwise'
	finds save 'goes on otherwise after restore'
	finds import 'goes on otherwise after import'
	finds torn 'obeys import of half a file'
	finds stop 'exited with status 3'
	finds end 'did not stop within 3.0s: killed'
	[ "$(grep -c $'\tok$' found)" -eq 9 ]
}

@test "--check finds orders that are obeyed too well, or too late" {
	faulty other export lingers
	finds set 'changes fragment 1 when fragment 0 is applied'
	finds prepare ''
	finds stop 'did not stop within 3.0s: killed'
	cp m/model.safetensors tiny.safetensors
	faulty many-tokens
	finds tokens '1000000000000 tokens in .* operations a second'
}

@test "--check finds moments that stay, and trainers that do not stop" {
	faulty stale stop
	finds fresh 'the optimizer does not begin anew'
	finds stop 'did not stop within 3.0s: killed'
	[ "$(grep -c $'\tok$' found)" -eq 19 ]
}

@test "--check finds bad files" {
	faulty nan
	finds load 'holds nan where'
	faulty half
	finds load 'bytes past the end'
	faulty lacks
	finds load 'is missing'
	faulty load
	finds load 'where .* belongs'
}

@test "--check finds trainers that hang, die, babble or do nothing" {
	silence=1s faulty hang-ready
	finds ready 'hangs: no ready for 1.0s'
	silence=15s faulty hang-step
	finds go 'hangs: no step for 15.0s'
	faulty rw die
	finds together 'answers 1 of 4 orders that come together'
	finds go 'exited with status 3'
	faulty garbage
	finds go '"Traceback (most recent call last):" is not a line'
	faulty no-tokens
	finds go 'a step had 0 tokens'
	faulty nan-loss
	finds go 'the loss of step 1 is no number'
	faulty still
	finds go '3 steps change nothing'
}

@test "--check: bad command lines, models and commands" {
	run dl-learn --check
	[ "$status" -eq 64 ]
	run dl-learn --check tiny.safetensors
	[ "$status" -eq 64 ]
	run dl-learn --check --push int8 tiny.safetensors -- true
	[ "$status" -eq 64 ]
	run dl-learn --layout layout.tsv "$link" -- true
	[ "$status" -eq 64 ]
	run dl-learn --check nothing -- true
	[ "$status" -eq 66 ]
	run dl-learn --check text -- true
	[ "$status" -eq 65 ]
	run dl-learn --check --layout layout.tsv tiny.safetensors -- true
	[ "$status" -eq 65 ]
	run dl-learn --check tiny.safetensors -- ./nothing
	[ "$status" -eq 66 ]
}

# toy FAULT [OPTION...]: a learner whose trainer misbehaves once.
toy() {
	touch "$1.once"
	background "$1" dl-learn -n "$1" --scratch "$scratch" \
		--heartbeat 300ms --save-every 20 "${@:2}" "$link" -- \
		"${toy[@]}" once="$1.once" pause=0.1 "$1"
}

# goes_on NAME MESSAGE: it said that, started the trainer again, and pushes.
goes_on() {
	wait_for has 1 "$2.*: starting it again" "$1.log"
	wait_for pushed "$1" $(($(grep -c "\"push\".*\"$1\"" tape) + 2))
}

@test "a run goes on with trainers that misbehave" {
	background syncer dl-sync serve --store store --listen "$link" \
		--fragments 2 -H 6 --tape tape -o out.safetensors \
		tiny.safetensors
	for fault in die garbage no-tokens nan half; do
		toy "$fault"
	done
	toy hang-step --step-timeout 15s
	toy hang-answer --step-timeout 15s
	toy stop --stop-timeout 300ms
	goes_on die 'trainer: exited with status 3'
	goes_on garbage '"Traceback (most recent call last):" is not a line'
	goes_on no-tokens 'says that a step had 0 tokens'
	goes_on nan "the trainer's values are not finite"
	goes_on half 'send.[01]: header claims [0-9]* bytes past the end'
	goes_on hang-step 'trainer: hangs: no step for 15.0s'
	goes_on hang-answer 'trainer: hangs: no answer for 15.0s'
	wait_for pushed stop
	dl-sync end "$link"
	for name in "${!pid[@]}"; do
		ends "$name"
	done
	grep 'trainer: did not stop within 300ms: killed' stop.log
	[ "$(cat ./*.log | grep -c 'did not stop')" -eq 1 ]
	dl-frag check out.safetensors
	not grep '"norm":"' tape
	[ -z "$(ls -A "$scratch")" ]
}
