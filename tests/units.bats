#!/usr/bin/env bats
# The units in examples/systemd: systemd's own checks of them, and the commands
# in them.

load run/run.bash

setup() {
	run_setup
	for unit in "$abs_top_srcdir"/examples/systemd/*; do
		sed "s|^ExecStart=dl-|ExecStart=$abs_top_builddir/dl-|" "$unit" \
			>"$(basename "${unit/@/@demo}")"
	done
}

teardown() {
	run_teardown
}

has_systemd() {
	command -v systemd-analyze || skip "there is no systemd-analyze"
}

@test "units are what systemd can run" {
	has_systemd
	run systemd-analyze verify --man=no ./*@*
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

# exposure UNIT MOST: by systemd's count, of which 100 is the worst.
exposure() {
	systemd-analyze security --offline=true --threshold="$2" "$1"
}

@test "units give away little" {
	has_systemd
	exposure dl-sync@demo.service 11
	exposure dl-learn@demo.service 15
	exposure dl-sync-run@demo.service 2
}

# start PREFIX: its command for the instance demo, as the unit has it.
start() {
	local command

	command=$(sed -e ':more' -e '/\\$/{ N; s/\\\n//; b more' -e '}' \
		"$1@demo.service" | sed -n "s|/srv|$PWD|g; s|%i|demo|g
			s|^ExecStart=||p")
	STATE_DIRECTORY=$PWD/$1 RUNTIME_DIRECTORY=$PWD \
		background "$1" bash -c "exec $command <$1.key"
}

@test "a syncer and a learner, by the commands of their units" {
	mkdir dl-sync dl-learn
	dl-key gen -o dl-sync.key
	dl-key gen -o dl-learn.key
	echo "$(dl-key pub dl-learn.key) demo" >learners
	export OPTIONS="--key - --authorized learners --listen tcp:127.0.0.1:0
		-H 6 --fragments 3 --steps 12" MODEL=m/model.safetensors
	start dl-sync
	wait_for has 2 'listens at' dl-sync.log
	port=$(sed -n 's/.*127.0.0.1://p' dl-sync.log)
	export OPTIONS='--key -' NAME='-n demo' \
		LINK="tcp:$(dl-key pub dl-sync.key)@127.0.0.1:$port" \
		TRAINER='dl-train run -q -b 2 m text'
	start dl-learn
	ends dl-sync
	ends dl-learn
	dl-frag check dl-sync/model.safetensors
	[ "$(ls dl-sync)" = $'checkpoints\nmodel.safetensors\nstore\ntape' ]
}

@test "a pass over a spool, by the command of its unit" {
	mkdir -p dl-tools/demo
	touch dl-sync-run.key
	export OPTIONS='--layout layout.tsv' MODEL=m/model.safetensors
	start dl-sync-run
	ends dl-sync-run 75
	[ -e dl-tools/demo/spool/global/latest ]
}
