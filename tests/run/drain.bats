#!/usr/bin/env bats
# Learners that are told to leave: SIGTERM at any time of their life.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# puppet: writes the trainer script of that name, which trains nothing. What it
# does on an order is in the variable of that name.
puppet() {
	dl-frag split -q -l layout.tsv -o records m/model.safetensors
	cat >puppet <<-END
		#!/bin/sh
		${start:-}
		echo ready 1 >&4
		while read -r verb a b <&3; do
			case \$verb in
			load) ${load:-echo ok >&4} ;;
			go) ${go:-sleep 0.01; echo step 32 1.0 >&4} ;;
			send) cp records/*"\$a.frag" "\$b"; echo ok >&4 ;;
			stop) ${stop:-echo ok >&4; exit} ;;
			*) echo ok >&4 ;;
			esac
		done
	END
	chmod +x puppet
}

# pulls NAME [OPTION...]: a learner with that trainer.
pulls() {
	local name=$1
	shift
	background "$name" dl-learn -n "$name" --scratch "$scratch" \
		--heartbeat 300ms "$@" "$link" -- ./puppet
}

ask() {
	kill -TERM "${pid[$1]}"
}

# last NAME P: the number of its last push of fragment P that came.
last() {
	grep "\"push\".*\"learner\":\"$1\".*\"fragment\":$2," tape | tail -n 1 |
		sed 's/.*"seq":\([0-9]*\).*/\1/'
}

@test "a preempted learner's last work is in the model" {
	syncer
	learner ann
	learner ben
	wait_for pushed ann 2
	ask ann
	ends ann # with 0: each push was taken
	wait_for has 1 '"leave".*"ann"' tape
	all=$(last ann 0),$(last ann 1),$(last ann 2)
	grep '"drained".*"ann"' tape
	wait_for grep "\"ann\".*\"merged\":\[$all\]" store/HEAD
}

@test "the smallest goes first" {
	syncer -H 3000
	learner ann
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	ask ann
	ends ann
	[ "$(sed -n 's/.*"push".*"fragment":\([0-9]\).*/\1/p' tape |
		tr -d '\n')" = 201 ]
}

@test "what was not delivered is said" {
	syncer -H 3000
	learner ann --drain 200ms
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	kill_hard syncer
	wait_for has 1 "trying again" ann.log
	ask ann
	ends ann 75
	grep "the syncer is away: the last work waits 200ms for it" ann.log
	grep "^dl-learn: fragments 0-2: [0-9]* steps were not delivered$" ann.log
	[ -z "$(ls -A "$scratch")" ]
}

@test "a second SIGTERM ends at once, and says so too" {
	syncer -H 3000
	learner ann --drain 1h
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	kill -STOP "${pid[syncer]}"
	ask ann
	wait_for has 1 "delivers its last work" ann.log
	sleep 0.6
	kill -0 "${pid[ann]}"
	ask ann
	ends ann 75
	grep "fragments 0-2: [0-9]* steps were not delivered" ann.log
}

@test "two signals at once are one" {
	syncer -H 3000
	learner ann
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	kill -STOP "${pid[ann]}"
	kill -TERM "${pid[ann]}"
	kill -INT "${pid[ann]}"
	kill -CONT "${pid[ann]}"
	ends ann
	[ "$(grep -c '"push".*"ann"' tape)" -eq 3 ]
}

@test "a syncer that comes back within the time gets all of it" {
	syncer -H 3000
	learner ann --drain 1h
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	kill_hard syncer
	wait_for has 1 "trying again" ann.log
	ask ann
	wait_for has 1 "waits 1h00m" ann.log
	syncer -H 3000
	ends ann
	[ "$(grep -c '"push".*"ann"' tape)" -eq 3 ]
	not grep "not delivered" ann.log
}

@test "SIGTERM before there is a syncer" {
	learner ann --drain 1h
	wait_for has 1 "trying again" ann.log
	ask ann
	ends ann
}

@test "SIGTERM while the trainer starts, loads, or trains" {
	syncer
	for when in start load go; do
		(eval "$when='echo >here; exec sleep 1000'" && puppet)
		drain=1h # only for a step in hand is there a reason to wait
		[ $when != go ] || drain=100ms
		pulls ann --drain $drain --stop-timeout 100ms
		wait_for test -e here
		ask ann
		ends ann
		not grep "not delivered" ann.log
		[ -z "$(ls -A "$scratch")" ]
		rm here ann.log
	done
}

@test "a trainer that does not go on keeps what it had done" {
	go='[ -e stuck ] && exec sleep 1000; sleep 0.01; echo step 32 1.0 >&4'
	puppet
	syncer -H 3000
	pulls ann --drain 100ms --stop-timeout 100ms
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	touch stuck
	sleep 0.1
	ask ann
	ends ann 75
	grep "fragments 0-2: [0-9]* steps were not delivered" ann.log
}

@test "a trainer that will not stop is stopped" {
	stop="trap '' TERM"
	puppet
	syncer
	pulls ann --stop-timeout 100ms
	wait_for pushed ann
	ask ann
	ends ann
	[ -z "$(ls -A "$scratch")" ]
	not pgrep -f "$PWD/./puppet"
}

@test "a trainer that dies when it should hand over its last work" {
	puppet
	sed -i 's/send) /send) [ -e die ] \&\& exit 3; /' puppet
	syncer -H 3000
	pulls ann
	wait_for has 1 '"ann".*"steps":[1-9]' tape
	touch die
	ask ann
	ends ann 75
	grep "trainer: exited with status 3$" ann.log
	grep "what the trainer had not handed over is lost" ann.log
}

@test "SIGTERM while the run ends" {
	for late in 0 0.02 0.05 0.1; do
		rm -rf store tape
		syncer -H 3000
		learner ann
		wait_for has 1 '"ann".*"steps":[1-9]' tape
		dl-sync end "$link"
		sleep $late
		ask ann || true
		ends ann
		ends syncer
		[ "$(grep -c '"push".*"ann"' tape)" -eq 3 ]
	done
}
