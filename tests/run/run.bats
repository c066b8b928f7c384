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
