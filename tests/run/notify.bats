#!/usr/bin/env bats
# What daemons tell a service manager, by a real datagram socket.

load run.bash

setup() {
	run_setup
	manager=$BATS_TEST_TMPDIR/manager
}

teardown() {
	run_teardown
}

# listens: the manager hears, and daemons started from now on tell it.
listens() {
	background heard "$abs_top_srcdir/tests/run/manager.py" "$manager"
	wait_for has 1 hears heard.log
	export NOTIFY_SOCKET=$manager
}

# heard N PATTERN: it has heard at least so many that match.
heard() {
	wait_for has "$1" "$2" heard.log
}

@test "a syncer says when it is ready, reads again, and leaves" {
	listens
	syncer
	heard 1 '^READY=1$'
	has 1 'listens at' syncer.log
	heard 1 '^STATUS=clock 0, 0 of 0 learners live'
	kill -HUP "${pid[syncer]}"
	heard 1 '^RELOADING=1 MONOTONIC_USEC=[1-9][0-9]*$'
	heard 2 '^READY=1$'
	kill -TERM "${pid[syncer]}"
	ends syncer
	heard 1 '^STOPPING=1$'
	[ "$(grep -c WATCHDOG heard.log)" -eq 0 ]
}

@test "a learner says when it is ready, reads again, and leaves" {
	syncer
	listens
	learner ann
	heard 1 '^READY=1$'
	heard 1 '^STATUS=in touch: clock'
	kill -HUP "${pid[ann]}"
	heard 1 '^RELOADING=1 MONOTONIC_USEC='
	heard 2 '^READY=1$'
	kill -TERM "${pid[ann]}"
	ends ann
	[ "$(grep -c '^STOPPING=1$' heard.log)" -eq 1 ]
}

@test "the end of a run is a stop" {
	listens
	syncer --steps 12
	learner ann
	ends syncer
	ends ann
	[ "$(grep -c '^STOPPING=1$' heard.log)" -eq 2 ]
}

@test "the watchdog sees loops that turn, and none that does not" {
	listens
	export WATCHDOG_USEC=100000
	syncer
	heard 5 '^WATCHDOG=1$'
	kill -STOP "${pid[syncer]}"
	sleep 0.3
	before=$(grep -c WATCHDOG heard.log)
	sleep 0.3
	[ "$(grep -c WATCHDOG heard.log)" -eq "$before" ]
	kill -CONT "${pid[syncer]}"
	heard $((before + 2)) '^WATCHDOG=1$'
	kill -TERM "${pid[syncer]}"
	ends syncer
	: >heard.log
	learner ann
	heard 5 '^WATCHDOG=1$'
}

@test "an abstract socket, and a watchdog of another process" {
	manager=@dl-tools-$$-$BATS_TEST_NUMBER
	listens
	WATCHDOG_USEC=1000 WATCHDOG_PID=1 syncer --steps 1
	heard 1 '^READY=1$'
	kill -TERM "${pid[syncer]}"
	ends syncer
	heard 1 '^STOPPING=1$'
	[ "$(grep -c WATCHDOG heard.log)" -eq 0 ]
}

@test "trainers are told of no manager" {
	syncer
	listens
	WATCHDOG_USEC=1000000 background ann dl-learn -n ann "$link" -- \
		sh -c 'env >env; exec dl-train run -q m text'
	heard 1 '^READY=1$'
	wait_for has 1 '^DL_TRAINER=' env
	[ "$(grep -cE "NOTIFY|WATCHDOG" env)" -eq 0 ]
}

@test "a socket that is none is said, and costs nothing" {
	NOTIFY_SOCKET=nowhere syncer
	wait_for has 1 'NOTIFY_SOCKET: neither a path nor @NAME' syncer.log
	NOTIFY_SOCKET=/no/such/socket learner ann
	wait_for pushed ann
}
