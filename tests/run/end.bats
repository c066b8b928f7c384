#!/usr/bin/env bats
# Learners that are cut off as their run ends.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

lives() {
	kill -0 "${pid[$1]}"
}

@test "who was cut off before the end is told when it comes back" {
	syncer --dead 1s
	learner ann --heartbeat 50ms
	learner ben --heartbeat 50ms
	wait_for pushed ann
	wait_for pushed ben
	kill -STOP "${pid[ben]}"
	wait_for has 1 '"leave".*"ben"' tape
	dl-sync end "$link"
	ends ann
	dl-frag check out.safetensors
	lives syncer
	grep -E "waits [0-9.]+s to tell ben, who was cut off" syncer.log
	kill -CONT "${pid[ben]}"
	ends ben
	ends syncer
}

@test "nobody waits for who said bye" {
	syncer
	learner ann
	learner ben
	wait_for pushed ann
	wait_for pushed ben
	kill "${pid[ben]}"
	ends ben
	dl-sync end "$link"
	ends ann
	ends syncer
	not grep "cut off" syncer.log
}

@test "nor longer than a signal allows" {
	syncer
	learner ann
	wait_for pushed ann
	kill_hard ann
	wait_for has 1 'ann is gone' syncer.log
	dl-sync end "$link"
	grep -E "waits [0-9.]+s to tell ann, who was cut off" syncer.log
	kill "${pid[syncer]}"
	ends syncer
}

@test "nor for who has been gone for longer than the end may take" {
	syncer --end-timeout 300ms
	learner ann
	learner ben
	wait_for pushed ann
	wait_for pushed ben
	kill_hard ann
	wait_for has 1 'ann is gone' syncer.log
	more=$(($(grep -c '"push".*"learner":"ben"' tape) + 5))
	wait_for pushed ben "$more"
	sleep 0.3
	dl-sync end "$link"
	ends ben
	ends syncer
	not grep "cut off" syncer.log
}

@test "a learner gives up when there is no syncer any more" {
	syncer
	wait_for [ -S s ]
	learner ann --give-up 500ms --drain 100ms
	learner ben
	wait_for pushed ann
	wait_for pushed ben
	kill_hard syncer
	ends ann 75
	grep "^dl-learn: no syncer for 500ms: gives up$" ann.log
	grep "^dl-learn: fragment.* not delivered$" ann.log
	lives ben
}

@test "nor does it wait for ever for one that never was" {
	learner ann --give-up 500ms
	ends ann 69
	grep "no syncer for 500ms: gives up" ann.log
	link=dir:$BATS_TEST_TMPDIR/spool
	learner ben --give-up 500ms
	ends ben 69
	grep "no syncer for 500ms: gives up" ben.log
	dl-key gen -o key
	link=unix:$BATS_TEST_TMPDIR/s
	learner joe --give-up 500ms --key key
	ends joe 69
	grep "no syncer for 500ms: gives up" joe.log
	[ -z "$(ls -A "$scratch")" ]
}
