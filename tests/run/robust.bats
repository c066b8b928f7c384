#!/usr/bin/env bats
# Runs in which something fails: learners, syncers and trainers that are
# killed, that come back, or that talk nonsense.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# The clock of the last step that a learner told the syncer.
clock() {
	grep "\"step\".*\"learner\":\"$1\"" tape | tail -n 1 |
		sed 's/.*"clock":\([0-9]*\).*/\1/'
}

# past CLOCK NAME: that learner's clock is above it.
past() {
	[ "$(clock "$2")" -gt "$1" ]
}

# A restart's line on the tape.
starts() {
	has "$1" '"format"' tape
}

@test "a learner killed with -9 is not missed, and comes back" {
	syncer
	learner ann
	learner ben
	wait_for pushed ann 2
	wait_for pushed ben 2
	kill_hard ben
	wait_for has 1 '"leave".*"ben"' tape
	wait_for past $(($(clock ann) + 20)) ann
	learner ben
	wait_for has 2 '"join".*"ben"' tape
	before=$(grep -c '"push".*"ben"' tape)
	wait_for pushed ben $((before + 2))
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
	# What the killed one left behind has been swept.
	[ -z "$(ls -A "$scratch")" ]
}

@test "learners train on while the syncer restarts" {
	syncer
	learner ann
	learner ben
	wait_for pushed ann 3
	kill -TERM "${pid[syncer]}"
	ends syncer
	syncer
	wait_for has 2 "is here" syncer.log
	wait_for has 2 '"join".*"ann"' tape
	wait_for has 2 '"join".*"ben"' tape
	before=$(grep -c '"push".*"ann"' tape)
	wait_for pushed ann $((before + 3))
	starts 2
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
}

# What a syncer decides after its last word, nobody is told of.
@test "a syncer that is told to stop decides nothing more" {
	syncer --grace 400ms
	learner ann
	learner ben
	wait_for pushed ann 2
	wait_for pushed ben 2
	kill -STOP "${pid[ben]}"
	before=$(merged)
	wait_for has $((before + 3)) '"merged"' tape
	kill -TERM "${pid[syncer]}"
	wait_for has 1 "trying again" ann.log
	before=$(merged)
	sleep 1
	kill_hard ben
	ends syncer
	[ "$(merged)" -eq "$before" ]
	grep '"ann"' tape | tail -n 1 | not grep '"join"'
}

@test "a syncer killed with -9 goes on from its store" {
	syncer
	learner ann
	wait_for has 6 '"merged"' tape
	kill_hard syncer
	wait_for has 1 "trying again" ann.log
	syncer
	wait_for has 2 '"join".*"ann"' tape
	grep -q '"epoch":2' store/HEAD
	before=$(merged)
	wait_for has $((before + 3)) '"merged"' tape
	dl-sync end "$link"
	ends syncer
	ends ann
	is_better
}

# merges N: so many more are committed from now on.
merges() {
	wait_for has $(($(merged) + $1)) '"merged"' tape
}

@test "a syncer whose store is set back takes its learners along" {
	syncer --global int4
	learner ann
	learner ben
	wait_for pushed ann 3
	wait_for pushed ben 3
	kill "${pid[syncer]}"
	ends syncer
	cp -r store old
	syncer --global int4
	wait_for has 2 '"join".*"ann"' tape
	wait_for has 2 '"join".*"ben"' tape
	# Both get ahead of what the store will know.
	merges 9
	kill_hard syncer
	rm -r store
	mv old store
	mv tape tape.before
	syncer --global int4
	wait_for has 1 '"join".*"ann"' tape
	wait_for has 1 '"join".*"ben"' tape
	merges 9
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
	dl-stat -t tape >stat
	cat stat
	cut -f 13 stat | not grep -q clock
}

@test "a name belongs to one learner" {
	syncer
	learner ann
	wait_for pushed ann
	run dl-learn -n ann --scratch "$scratch" "$link" -- true
	[ "$status" -eq 77 ]
	[[ "$output" == *"ann is taken by unix:"* ]]
	before=$(grep -c '"push".*"ann"' tape)
	wait_for pushed ann $((before + 2))
}

@test "a trainer that dies is started again" {
	cat >trainer <<-'END'
		#!/bin/sh
		[ -e died ] || (sleep 1; touch died; kill -9 0) &
		exec dl-train run -q -b 2 --step-time 10ms m text
	END
	chmod +x trainer
	syncer
	background ann dl-learn -n ann --scratch "$scratch" "$link" -- ./trainer
	wait_for has 1 "starting it again" ann.log
	grep -q "killed by signal 9" ann.log
	before=$(grep -c '"push".*"ann"' tape)
	wait_for pushed ann $((before + 2))
	dl-sync end "$link"
	ends syncer
	ends ann
	is_better
}

@test "a trainer that talks nonsense ends its learner" {
	syncer
	run dl-learn -n ann --scratch "$scratch" "$link" -- \
		sh -c 'echo "rm -rf /" >&4; exec sleep 60'
	[ "$status" -eq 76 ]
	[[ "$output" == *'"rm -rf /" is not a line'* ]]
	[ -z "$(ls -A "$scratch")" ]
}

@test "a command that is not there" {
	# It is said before there is a syncer to join.
	for command in ./nothing no-such-trainer ""; do
		run dl-learn -n ann --scratch "$scratch" "$link" -- "$command"
		[ "$status" -eq 66 ]
		[ "$output" = "dl-learn: $command: No such file or directory" ]
	done
	mkdir bin && touch bin/trainer
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run dl-learn -n ann \
		--scratch "$scratch" "$link" -- trainer
	[ "$status" -eq 71 ]
	[ "$output" = "dl-learn: trainer: Permission denied" ]
	[ -z "$(ls -A "$scratch")" ]
}

@test "nothing stops: learners are killed at random" {
	syncer
	for name in ann ben cid dee; do
		learner "$name"
	done
	wait_for pushed ann
	RANDOM=7
	for round in $(seq 6); do
		names=(ann ben cid dee)
		name=${names[RANDOM % 4]}
		kill_hard "$name"
		sleep "0.$((RANDOM % 5))"
		learner "$name"
		if [ "$round" = 3 ]; then
			kill_hard syncer
			syncer
		fi
		sleep 0.5
	done
	for name in ann ben cid dee; do
		before=$(grep -c "\"push\".*\"$name\"" tape)
		wait_for pushed "$name" $((before + 2))
	done
	dl-sync end "$link"
	ends syncer
	for name in ann ben cid dee; do
		ends "$name"
	done
	is_better
	starts 2
}
