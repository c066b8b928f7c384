#!/usr/bin/env bats
# Observers: so many at once, and each only while it reads.

load run.bash

setup() {
	command -v python3 >/dev/null || skip "python3 is not installed"
	run_setup
}

teardown() {
	run_teardown
}

observers() {
	background observers python3 "$abs_top_srcdir/tests/run/observers.py" \
		"$link" "$@"
}

# joins: not more often than the log has lines for.
joins() {
	sleep 0.5
	dl-join -o live.safetensors "$link" 2>/dev/null
}

@test "of too many observers the last comes too late, until others waste time" {
	syncer
	wait_for [ -S s ]
	observers 65
	wait_for has 1 "^64 too many observers, try later$" observers.log
	wait_for joins
	dl-frag check live.safetensors
	has 1 "is sent away: reads nothing while others wait" syncer.log
}

@test "an observer that reads nothing is sent away" {
	syncer --dead 300ms
	wait_for [ -S s ]
	observers 1
	wait_for has 1 "is sent away: reads nothing$" syncer.log
	[ "$(cat observers.log)" = 1 ]
}

@test "an observer that reads slowly gets the whole model" {
	dl-train init -fq -L 1 -H 2 -d 256 -c 16 -s 3 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	syncer --dead 300ms
	wait_for [ -S s ]
	observers slow
	ends observers
	read -r bytes seconds <observers.log
	[ "$bytes" -gt "$(stat -c %s m/model.safetensors)" ]
	[ "$seconds" -ge 2 ]
}
