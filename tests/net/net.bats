#!/usr/bin/env bats
# Runs across networks: long, thin and lossy ones, ones that are cut, and sites
# that move or hide. They need root and some of the kernel, and are skipped
# without (net.bash).

load ../run/run.bash
load net.bash

setup() {
	net_setup
	run_setup
	link=tcp:syncer:4000
	plain=(--insecure --insecure)
}

teardown() {
	[ -n "${space-}" ] || return 0
	net_teardown
	run_teardown
}

@test "three sites, 100 ms, 10 Mbit/s and a loss of 1%: a run to its end" {
	site syncer 1
	site ann 2
	site ben 3
	for name in syncer ann ben; do
		rate "$name" 10mbit 128kb
		loss "$name" 1
	done
	syncer "${plain[@]}" --steps 60
	learner ann "${plain[@]}"
	learner ben "${plain[@]}"
	ends syncer
	ends ann
	ends ben
	is_better
}
