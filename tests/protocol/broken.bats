#!/usr/bin/env bats
# What dl-protocol(7) calls broken ends a connection and nothing else; what may
# be passed over is.

load ../run/run.bash

setup() {
	command -v python3 >/dev/null || skip "python3 is not installed"
	run_setup
	syncer
	wait_for [ -S s ]
}

teardown() {
	run_teardown
}

@test "whatever is broken ends its connection, with a line in the log" {
	learner ann
	wait_for pushed ann
	run timeout 100 python3 "$abs_top_srcdir/tests/protocol/broken.py" \
		"$link"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 1 ]
	[ "$output" -ge 70 ]
	away "$output" "is sent away: |refused: |eve is gone: "
	merged=$(merged)
	wait_for has $((merged + 3)) '"merged"' tape
}

# floods KIND WHY: a learner of that name says it without end.
floods() {
	run timeout 60 python3 "$abs_top_srcdir/tests/protocol/flood.py" \
		"$link" "$1"
	echo "$output"
	[ "$status" -eq 0 ]
	wait_for has 1 "$1 is gone: $2" syncer.log
	[ "$(grep -c "$1 is gone" syncer.log)" -eq 1 ]
}

@test "who says more than any learner has to say is sent away" {
	floods step "more than 5000 messages a second"
	floods applied "more than 5000 messages a second"
	floods want "wants too much"
	floods end "more than 5000 messages a second"
}

@test "no memory is taken for a push larger than its fragment" {
	learner ann
	wait_for pushed ann
	run timeout 100 python3 "$abs_top_srcdir/tests/protocol/huge.py" "$link"
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	for what in "shape.*has another shape" "more.*tensors, but fragment 0" \
		"codes.*is not U8 of as many" "scales.*is not one BF16"; do
		wait_for has 1 "${what/./ at .*: refused: push of fragment 0: .}" \
			syncer.log
	done
	wait_for pushed ann $(($(grep -c '"push".*"ann"' tape) + 3))
}

@test "what a peer does not know is passed over" {
	python3 - "$abs_top_srcdir/tests/protocol" "$link" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	from link import Link, hello
	link = Link(sys.argv[2])
	link.beat()
	link.say("hello", hello("eve", later="a word of another version"))
	assert link.hear(20).kind == "welcome"
	END
}
