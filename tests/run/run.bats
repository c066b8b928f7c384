#!/usr/bin/env bats
# Whole runs: dl-sync serve, dl-learn and dl-train as processes, on a model
# small enough to train in a moment.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

@test "two learners train one model to the end of the budget" {
	syncer --tokens 12000
	learner ann
	learner ben
	ends syncer
	ends ann
	ends ben
	pushed ann
	pushed ben
	is_better
	[ -z "$(ls -A "$scratch")" ]
}

@test "learners wait for a syncer that is not there yet" {
	learner ann
	wait_for has 1 "trying again" ann.log
	syncer --steps 30
	ends syncer
	ends ann
}

@test "dl-sync end ends the run" {
	syncer
	learner ann
	wait_for pushed ann 3
	dl-sync end "$link"
	ends syncer
	ends ann
	is_better
	run dl-sync end "$link"
	[ "$status" -eq 69 ]
}

@test "dl-join takes the model of a live run" {
	syncer
	learner ann
	wait_for has 6 '"merged"' tape
	dl-join "$link" -o live.safetensors
	dl-join "$link" | dl-frag check -
	dl-frag check live.safetensors -l layout.tsv
	kill -0 "${pid[ann]}"
	kill -TERM "${pid[syncer]}"
	ends syncer
	run dl-join "$link"
	[ "$status" -eq 69 ]
	[[ "$output" == *"$link"* ]]
}

@test "every preset trains" {
	for preset in decoupled streaming diloco downpour; do
		syncer --preset "$preset" --steps 40 --store "$preset" \
			--tape "$preset.tape"
		learner ann
		learner ben
		ends syncer
		ends ann
		ends ben
		[ "$(grep -c '"merged"' "$preset.tape")" -gt 6 ]
		is_better
		rm out.safetensors
	done
}

@test "plain tcp has to be allowed" {
	run dl-sync serve --store store --listen tcp:127.0.0.1:0 \
		m/model.safetensors
	[ "$status" -eq 64 ]
	background syncer dl-sync serve --store store --insecure \
		--listen tcp:127.0.0.1:0 --steps 30 m/model.safetensors
	wait_for has 1 "listens at" syncer.log
	link=$(sed -n 's/.*listens at //p' syncer.log)
	run dl-learn --scratch "$scratch" "$link" -- true
	[ "$status" -eq 64 ]
	learner ann --insecure
	ends syncer
	ends ann
}

@test "a model that could not be written is known at the start" {
	run dl-sync serve --store store --listen "$link" -o nowhere/out \
		m/model.safetensors
	[ "$status" -eq 73 ]
	[[ "$output" == *"nowhere/out: No such file"* ]]
	[ ! -e store ]
	run dl-sync serve --store store --listen "$link" --tape nowhere/tape \
		m/model.safetensors
	[ "$status" -eq 73 ]
	[[ "$output" == *"nowhere/tape: No such file"* ]]
	[ ! -e store ]
	mkdir -p folder/file # in the way
	run dl-sync serve --store store --listen "$link" --record folder \
		m/model.safetensors
	[ "$status" -eq 73 ]
	[[ "$output" == *"folder/file: is a folder"* ]]
	[ ! -e store ]
	run dl-sync serve --store store --listen "$link" --dead 0 \
		m/model.safetensors
	[ "$status" -eq 64 ]
}

@test "a store keeps its run" {
	run dl-sync serve --store store --listen "$link"
	[ "$status" -eq 64 ]
	syncer --run one
	wait_for has 1 "run one" syncer.log
	run dl-sync serve --store store --listen "$link.2"
	[ "$status" -eq 75 ]
	kill -TERM "${pid[syncer]}"
	ends syncer
	run dl-sync serve --store store --listen "$link" -H 7
	[ "$status" -eq 64 ]
	[[ "$output" == *"H is 6 in this run"* ]]
	run dl-sync serve --store store --listen "$link" --run two
	[ "$status" -eq 64 ]
}

@test "learners of another run are sent away" {
	syncer --run one
	learner ann
	wait_for pushed ann
	kill -TERM "${pid[syncer]}"
	ends syncer
	rm -r store
	syncer --run two
	ends ann 65
	grep -q "this is run two" ann.log
	grep -q "ann at unix:.*: refused: this is run two" syncer.log
}

# policy PID: how it is scheduled (sched(7)): 0 as others are, 3 as a batch.
policy() {
	cut -d ' ' -f 41 "/proc/$1/stat"
}

# stays_behind: ann is a batch, and what it has started is none.
stays_behind() {
	[ "$(policy "${pid[ann]}")" -eq 3 ]
	[ "$(policy "$(cat trainer.pid)")" -eq 0 ]
}

@test "a learner takes its trainer no processor away" {
	[ "$(policy self)" = 0 ] || skip "not scheduled as others are"
	syncer
	background ann dl-learn -n ann --scratch "$scratch" "$link" -- \
		sh -c 'echo $$ >trainer.pid
		exec dl-train run -q -b 2 --step-time 10ms m text'
	wait_for pushed ann
	stays_behind
	kill -9 "$(cat trainer.pid)"
	rm trainer.pid
	wait_for test -s trainer.pid
	wait_for pushed ann $(($(grep -c '"push".*"ann"' tape) + 2))
	stays_behind
}
