#!/usr/bin/env bats
# Data over several streams, and no faster than asked for.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# lock_step [OPTION...]: a syncer whose run does not depend on timing.
lock_step() {
	syncer -v --run same --wait --tau 0 "$@"
}

# ann [OPTION...]: the same learner each time, one that says more.
ann() {
	learner ann -v -s 1 --slot 0 "$@"
}

# run_hash: of the model that the run ends with; then all of it is removed.
run_hash() {
	ends ann
	ends syncer
	hash=$(sha256sum <out.safetensors)
	rm -r store out.safetensors tape
}

# stranger INSTANCE: who says that it is a stream of ann's; prints the answer.
stranger() {
	python3 "$abs_top_srcdir/tests/run/stranger.py" "${link#unix:}" "$1"
}

# fewer N PATTERN FILE: than N lines of it match.
fewer() {
	[ "$(grep -c -- "$2" "$3")" -lt "$1" ]
}

needs_python() {
	command -v python3 >/dev/null || skip "python3 is not installed"
}

@test "four streams make the same model as one, bit for bit" {
	lock_step --steps 40
	ann
	run_hash
	one=$hash
	fewer 1 "one more stream" syncer.log
	lock_step --steps 40
	ann --streams 4
	run_hash
	[ "$hash" = "$one" ]
	has 3 "ann has one more stream" syncer.log
}

@test "streams that are cut while tensors cross cost nothing but time" {
	needs_python
	rm -r m
	dl-train init -q -L 1 -H 2 -d 96 -c 16 -s 3 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	syncer -v --steps 14 --rate 1M
	background cutter python3 "$abs_top_srcdir/tests/run/cutter.py" \
		cut "${link#unix:}"
	wait_for [ -S cut ]
	link=unix:$PWD/cut ann --streams 3 --rate 1M
	ends ann
	ends syncer
	has 3 cut cutter.log
	has 5 "ann has one more stream" syncer.log
	fewer 2 "ann is here" syncer.log
	has 1 " 0 refused" syncer.log
	is_better
}

@test "no more streams than granted, and none of a stranger's" {
	needs_python
	syncer -v --streams 2
	ann --streams 4
	wait_for pushed ann 6
	fewer 2 "one more stream" syncer.log
	run stranger 1
	[[ "$output" == *"nobody of that name has a connection"* ]]
	instance=$(sed -n 's/.*"join".*"instance":\([0-9]*\).*/\1/p' tape)
	run stranger "$instance"
	[[ "$output" == *"all streams are there"* ]]
	has 2 "ann at unix:.*: refused" syncer.log
	dl-sync end "$link"
	ends syncer
	ends ann
}

@test "streams leave descriptors for files and for others" {
	ulimit -S -n 52
	syncer -v --streams 16
	ulimit -S -n 256
	for name in ann bob cat; do
		learner $name --streams 16
	done
	wait_for has 1 "no descriptors for more streams" syncer.log
	merged=$(merged)
	wait_for has $((merged + 6)) '"merged"' tape
	dl-join -o live.safetensors "$link"
	has 1 "has one more stream" syncer.log
	fewer 1 "Too many open files" syncer.log
	dl-sync end "$link"
	ends syncer
}

@test "who finds no descriptor is turned away, and the run goes on" {
	ulimit -S -n 30
	syncer -v
	ulimit -S -n 256
	learner ann
	wait_for pushed ann
	# Trainers that make no step, and end with their learners.
	for i in $(seq 8); do
		background "l$i" dl-learn -n "l$i" --scratch "$scratch" \
			"$link" -- sh -c 'cat <&3'
	done
	wait_for has 1 "turned away: no descriptors" syncer.log
	merged=$(merged)
	wait_for has $((merged + 3)) '"merged"' tape
	fewer 1 "Too many open files" syncer.log
}

@test "--rate holds data back, and the run goes on" {
	syncer --steps 60
	ann --rate 100K
	ends syncer
	ends ann
	# bytes pushed between the first push and the last, and the time
	grep '"event":"push"' tape | sed 's/.*"now":\([0-9]*\).*"bytes":\([0-9]*\).*/\1 \2/' |
		awk 'NR == 1 { from = $1; next } { n += $2; to = $1 }
		END {
			seconds = (to - from) / 1e9
			print n, seconds
			exit !(NR > 5 && n <= 1.1 * 100000 * (seconds + 0.05) + 65535)
		}'
}

@test "streams of a session are sealed, and of the same key" {
	for name in syncer ann; do
		dl-key gen -o "$name.key"
	done
	echo "$(dl-key pub ann.key) ann" >authorized
	link=tcp:127.0.0.1:0
	syncer -v --steps 30 --key syncer.key --authorized authorized
	wait_for has 1 "listens at tcp" syncer.log
	port=$(sed -n 's/.*listens at tcp:.*://p' syncer.log)
	link=tcp:$(dl-key pub syncer.key)@127.0.0.1:$port
	ann --key ann.key --streams 3
	ends ann
	ends syncer
	has 2 "ann has one more stream" syncer.log
	is_better
}

@test "options of streams are refused where they mean nothing" {
	run dl-learn --streams 4 dir:/nowhere -- true
	[ "$status" -eq 64 ]
	run dl-learn --streams 4 exec:true -- true
	[ "$status" -eq 64 ]
	run dl-learn --streams 17 "$link" -- true
	[ "$status" -eq 64 ]
	run dl-learn --window 4Mi "$link" -- true
	[ "$status" -eq 64 ]
	run dl-learn --streams 2 --window 1K "$link" -- true
	[ "$status" -eq 64 ]
	run dl-learn --rate 0 "$link" -- true
	[ "$status" -eq 64 ]
	run dl-learn --congestion none-such --insecure tcp:127.0.0.1:9 -- true
	[ "$status" -eq 64 ]
	[[ "$output" == *none-such* ]]
	run dl-learn --congestion reno "$link" -- true
	[ "$status" -eq 64 ]
}
