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

# sites NAME...: with addresses 10.9.0.1, 10.9.0.2, ...
sites() {
	local n=0

	for name in "$@"; do
		site "$name" $((++n))
	done
}

# goes_on NAME [N]: its pushes still come.
goes_on() {
	local before

	before=$(grep -c "\"push\".*\"learner\":\"$1\"" tape)
	wait_for pushed "$1" $((before + ${2:-3}))
}

@test "three sites, 100 ms, 10 Mbit/s and a loss of 1%: a run to its end" {
	sites syncer ann ben
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

@test "a site that is cut off is not missed, and comes back" {
	sites syncer ann ben
	syncer "${plain[@]}" --dead 3s
	learner ann "${plain[@]}"
	learner ben "${plain[@]}"
	wait_for pushed ann
	wait_for pushed ben
	cut_off ben
	wait_for has 1 "ben is gone: silent for" syncer.log
	goes_on ann 6
	wait_for has 1 "silent for" ben.log
	heal ben
	wait_for has 2 '"join".*"ben"' tape
	goes_on ben
	at syncer dl-sync end "${plain[@]}" "$link"
	ends syncer
	ends ann
	ends ben
	is_better
}

@test "a learner that died in the dark is replaced when it comes elsewhere" {
	sites syncer ann another
	syncer "${plain[@]}" --dead 10m
	learner ann "${plain[@]}"
	wait_for pushed ann
	cut_off ann
	kill_hard ann
	place[ann]=another
	learner ann "${plain[@]}"
	wait_for has 1 "ann is gone: silent, and replaced" syncer.log
	goes_on ann
}

@test "learners follow a syncer that moves" {
	sites syncer ann other
	syncer "${plain[@]}"
	learner ann "${plain[@]}"
	wait_for pushed ann
	kill "${pid[syncer]}"
	ends syncer
	cut_off syncer
	move syncer 3
	place[syncer]=other
	syncer "${plain[@]}"
	goes_on ann
	grep -q '"epoch":2' store/HEAD
}

@test "all addresses of a syncer's name are tried" {
	sites syncer ann
	# The second leads nowhere, and the system prefers it, as the nearer.
	echo "10.9.0.3 syncer" >>"$hosts"
	at ann ip neighbour add 10.9.0.3 lladdr 02:00:00:00:00:03 dev wan
	link=tcp:10.9.0.1:4000 syncer "${plain[@]}"
	learner ann "${plain[@]}"
	wait_for has 1 "trying again" ann.log
	wait_for pushed ann
	at ann dl-join "${plain[@]}" -o joined.safetensors "$link"
	dl-frag check joined.safetensors
}

@test "learners behind one address only dial out, and so do those who join" {
	sites syncer home
	behind home inside
	place[ann]=inside
	place[ben]=inside
	syncer "${plain[@]}"
	learner ann "${plain[@]}"
	learner ben "${plain[@]}"
	wait_for pushed ann
	wait_for pushed ben
	has 2 "is here (tcp:10.9.0.2:" syncer.log
	at inside dl-join "${plain[@]}" -o joined.safetensors "$link"
	dl-frag check joined.safetensors
}
