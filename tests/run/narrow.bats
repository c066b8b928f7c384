#!/usr/bin/env bats
# Runs over narrow wires: pushes and updates of a few bits a value.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# sums KIND: elements and bytes of the events of that kind between the tenth
# merge, when all have got the model, and the end of the run.
sums() {
	awk -F '[:,}]' -v kind="\"event\":\"$1\"" '
	/"event":"merged"/ { merged++ }
	/"event":"drained"/ { exit }
	merged >= 10 && index($0, kind) {
		for (i = 1; i < NF; i++) {
			if ($i == "\"elements\"") elements += $(i + 1)
			if ($i == "\"bytes\"") bytes += $(i + 1)
		}
	}
	END { printf "%d %d\n", elements, bytes }' tape
}

# narrower TIMES KIND: f32 would have been at least so many times more bytes.
narrower() {
	local elements bytes

	read -r elements bytes < <(sums "$2")
	echo "# $2: $bytes bytes, f32 $((4 * elements))" >&3
	awk -v e="$elements" -v b="$bytes" -v times="$1" \
		'BEGIN { exit !(b > 0 && 4 * e >= times * b) }'
}

@test "int4 both ways takes 6.5 times fewer bytes each way" {
	dl-train init -q -L 1 -H 2 -d 64 -c 16 -s 3 wide
	mv wide/* m/
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	syncer --global int4 --steps 150
	learner ann --push int4
	learner ben --push int4
	ends syncer
	ends ann
	ends ben
	dl-stat tape
	narrower 6.5 push
	narrower 6.5 applied
	is_better
}

# updates N: at least so many globals were updates, far below f32's size.
updates() {
	awk -F '[:,}]' -v least="$1" '
	/"event":"applied"/ {
		for (i = 1; i < NF; i++) {
			if ($i == "\"elements\"") elements = $(i + 1)
			if ($i == "\"bytes\"") bytes = $(i + 1)
		}
		n += bytes > 0 && bytes * 2 < elements * 4
	}
	END { print "#", n, "updates"; exit !(n >= least) }' tape
}

# tensors FILE...: their hashes.
tensors() {
	dl-frag show -H "$@" | grep -v '^#' | sort
}

# holds FRAGMENT: what a learner was last told to make of it is what the syncer
# has.
holds() {
	local file

	for file in "$scratch"/dl-learn-*/apply."$1"; do
		[ "$(tensors "$file")" = "$(tensors store/global/"$1".*)" ] ||
			return
	done
}

# goes_on N: merges are committed from now on.
goes_on() {
	local before

	before=$(merged)
	wait_for has $((before + $1)) '"merged"' tape
}

@test "learners hold what the syncer holds, whoever is killed" {
	syncer --global int4 --apply overwrite
	learner ann --push int4
	learner ben --push fp4
	wait_for has 6 '"merged"' tape
	for name in syncer ann syncer ben; do
		kill_hard "$name"
		if [ "$name" = syncer ]; then
			syncer --global int4 --apply overwrite
		else
			learner "$name" --push int4
		fi
		goes_on 12
	done
	updates 24
	kill "${pid[syncer]}"
	ends syncer
	for p in 0 1 2; do
		wait_for holds "$p"
	done
	not grep -q '"want"' tape
}

@test "every codec, each way and both together" {
	syncer --global bf16
	learner ann --push bf16
	learner ben --push int8
	learner cid --push int2
	learner dee
	for name in ann ben cid dee; do
		wait_for pushed "$name" 3
	done
	dl-sync end "$link"
	ends syncer
	for name in ann ben cid dee; do
		ends "$name"
	done
	is_better
}

@test "a run goes on with another codec, and pays what it owes" {
	syncer --global int4
	learner ann
	wait_for has 6 '"merged"' tape
	kill "${pid[syncer]}"
	ends syncer
	[ "$(ls store/error | wc -l)" -eq 3 ]
	grep -q '"error":' store/HEAD
	syncer --global int8
	goes_on 6
	kill "${pid[syncer]}"
	ends syncer
	[ "$(ls store/error | wc -l)" -eq 3 ]
	syncer
	goes_on 6
	dl-sync end "$link"
	ends syncer
	ends ann
	[ -z "$(ls store/error)" ]
	not grep -q '"error":' store/HEAD
	is_better
}

@test "a learner that lacks what updates start from asks for values" {
	syncer
	learner ann
	wait_for has 6 '"merged"' tape
	kill "${pid[syncer]}"
	ends syncer
	# Until now there was no need to keep such values.
	syncer --global int4
	wait_for has 1 '"want"' tape
	goes_on 12
	updates 3
	dl-sync end "$link"
	ends syncer
	ends ann
	[ "$(grep -c '"want"' tape)" -le 3 ]
	is_better
}

@test "a codec has to be one" {
	run dl-sync serve --store store --listen "$link" --global int3 \
		m/model.safetensors
	[ "$status" -eq 64 ]
	[[ "$output" == *"--global int3: not f32, "* ]]
	[ ! -e store ]
	run dl-learn --push 4 "$link" -- true
	[ "$status" -eq 64 ]
	[[ "$output" == *"--push 4: not f32, "* ]]
}
