#!/usr/bin/env bats
# A learner written from dl-protocol(7) alone, in one run with dl-learn.

load ../run/run.bash

setup() {
	command -v python3 >/dev/null || skip "python3 is not installed"
	run_setup
}

teardown() {
	run_teardown
}

# other NAME LINK [OPTION...]: a learner of that other make.
other() {
	local name=$1 to=$2
	shift 2
	background "$name" python3 "$abs_top_srcdir/tests/protocol/learner.py" \
		-n "$name" --step-time 0.01 "$@" "$to"
}

@test "both makes of learners take part in a run to its end" {
	syncer --quorum 2 --steps 120
	wait_for [ -S s ]
	other bob "$link" -v
	wait_for has 1 "^welcome" bob.log
	learner ann
	ends syncer
	ends ann
	ends bob
	dl-frag check out.safetensors
	grep -q '"push".*"learner":"bob"' tape
	# None of its pushes was refused, and rounds had both.
	not grep "taken=refused" bob.log
	has 3 "taken=round" bob.log
	grep -q "^global .*final=1" bob.log
}

@test "a learner of another make comes back to a syncer that starts anew" {
	syncer --steps 400
	wait_for [ -S s ]
	other bob "$link" -v
	wait_for has 3 "taken=settled" bob.log
	kill_hard syncer
	syncer --steps 200
	ends syncer
	ends bob
	has 1 "^welcome .*epoch=2" bob.log
	not grep "taken=refused" bob.log
	grep -q "^global .*final=1" bob.log
}

@test "both makes of learners keep in lock-step" {
	syncer --wait --tau 2 --apply blend:0.5 --quorum all --steps 60
	wait_for [ -S s ]
	# About as far as ann: each waits for the other's push to be taken.
	other bob "$link" -v --far 5e-4
	wait_for has 1 "^welcome" bob.log
	learner ann
	ends syncer
	ends ann
	ends bob
	not grep "taken=refused" bob.log
	not grep "was refused" ann.log
	has 3 "taken=round" bob.log
}

@test "a learner of another make takes updates in int8" {
	syncer --global int8 --steps 200
	wait_for [ -S s ]
	other bob "$link" -v
	ends syncer
	ends bob
	has 3 "^global .*base=1.* codec=int8" bob.log
	not grep "^> want\|taken=refused" bob.log
}

@test "a learner of another make comes by a session, in either suite" {
	python3 -c 'import cryptography' 2>/dev/null ||
		skip "python3-cryptography is not installed"
	umask 077
	for name in syncer ann bob carl; do
		dl-key gen >$name.key
		echo "$(dl-key pub <$name.key) $name" >>authorized
	done
	link=tcp:127.0.0.1:0 syncer --key syncer.key --authorized authorized \
		--steps 200
	wait_for has 1 "listens at tcp" syncer.log
	door=tcp:$(dl-key pub <syncer.key)@127.0.0.1
	door+=:$(sed -n 's/.*listens at tcp:.*://p' syncer.log)
	other bob "$door" -v --key bob.key --suites ChaChaPoly
	other carl "$door" -v --key carl.key --suites AESGCM,ChaChaPoly
	wait_for has 1 "^welcome" bob.log
	wait_for has 1 "^welcome" carl.log
	link=$door learner ann --key ann.key
	ends syncer
	ends ann
	ends bob
	ends carl
	not grep "taken=refused" bob.log carl.log
	has 1 "^global .*final=1" bob.log
	has 1 "^global .*final=1" carl.log
}

@test "a learner of another make carries fragments over several streams" {
	syncer --streams 3 --steps 200
	wait_for [ -S s ]
	other bob "$link" -v --streams 3
	ends syncer
	ends bob
	has 1 "^welcome .*streams=3" bob.log
	not grep "taken=refused" bob.log
	has 3 "taken=settled" bob.log
	grep -q "^global .*final=1" bob.log
}
