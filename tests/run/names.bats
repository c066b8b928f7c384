#!/usr/bin/env bats
# One name, one learner: who comes with a name that another has.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# as WHO NAME [OPTION...]: a process WHO that calls itself NAME.
as() {
	local who=$1 name=$2
	shift 2
	background "$who" dl-learn -n "$name" --scratch "$scratch" \
		--heartbeat 300ms "$@" "$link" -- \
		dl-train run -q -b 2 --step-time 10ms m text
}

# joined N: so many times, and no more.
joined() {
	[ "$(grep -c '"join".*"ann"' tape)" -eq "$1" ]
}

@test "a newcomer does not take the name of one who lives, however often" {
	syncer
	as first ann
	wait_for pushed ann
	for i in 1 2 3; do
		as second ann
		ends second 77
	done
	has 3 "ann is taken by unix:.*pid=${pid[first]}" second.log
	has 3 "ann at .*refused: ann is taken by" syncer.log
	joined 1
	wait_for pushed ann $(($(grep -c '"push".*"ann"' tape) + 2))
	dl-sync end "$link"
	ends first
	ends syncer
}

@test "a machine that was replaced does not take its name back" {
	syncer
	as first ann
	wait_for pushed ann
	kill -STOP "${pid[first]}"
	as second ann
	wait_for has 1 "ann is gone: silent, and replaced" syncer.log
	wait_for joined 2
	kill -CONT "${pid[first]}"
	ends first 77
	has 1 "ann is taken by unix:.*pid=${pid[second]}" first.log
	wait_for pushed ann $(($(grep -c '"push".*"ann"' tape) + 2))
	joined 2
	dl-sync end "$link"
	ends second
	ends syncer
}

@test "the replacement of a machine that died is in at once" {
	syncer --dead 1h
	as first ann
	wait_for pushed ann
	kill_hard first
	as second ann
	wait_for joined 2
	[ "$(grep -c "silent, and replaced" syncer.log)" -eq 0 ]
	wait_for pushed ann $(($(grep -c '"push".*"ann"' tape) + 2))
	dl-sync end "$link"
	ends second
	ends syncer
}

@test "there are so many places, and so many names without a key" {
	command -v python3 >/dev/null || skip "python3 is not installed"
	syncer --max-learners 2
	wait_for [ -S s ]
	python3 - "$abs_top_srcdir/tests/protocol" "$link" <<-'END'
	import sys
	sys.path.insert(0, sys.argv[1])
	from link import Link, hello

	def come(name, answer, text=""):
	    link = Link(sys.argv[2])
	    link.say("hello", hello(name))
	    m = link.hear(20)
	    words = m.fields.get("code", "") + " " + m.fields.get("text", "")
	    assert (m.kind, words) == (answer, text or " "), (m.kind, words)
	    return link

	ann = come("ann", "welcome")
	ben = come("ben", "welcome")
	come("cat", "error", "75 all places are taken: 2")
	ann_again = come("ann", "welcome")
	ann.close()
	ben.close()
	for name in "cdefgh":
	    come(name, "welcome").close()
	come("i", "error", "77 this run knows 8 names, and takes no new one")
	come("ben", "welcome")
	END
	[ "$(grep -c "refused: " syncer.log)" -eq 2 ]
}
