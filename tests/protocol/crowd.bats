#!/usr/bin/env bats
# Crowds of people with keys: they cost a syncer neither the descriptors nor
# the log that others need.

load ../run/run.bash

setup() {
	python3 -c 'import cryptography' 2>/dev/null ||
		skip "python3-cryptography is not installed"
	run_setup
	umask 077
	for name in ann ben eve obs; do
		dl-key gen >"$name.key"
		echo "$(dl-key pub <"$name.key") $name" >>authorized
	done
	sed -i '/ obs$/s/$/ observer/' authorized
	dl-key gen >syncer.key
	few=$(ulimit -S -n)
	ulimit -S -n 128
	link=tcp:127.0.0.1:0 syncer --key syncer.key --authorized authorized
	ulimit -S -n "$few"
	wait_for has 1 "listens at tcp" syncer.log
	link=tcp:$(dl-key pub <syncer.key)@127.0.0.1
	link+=:$(sed -n 's/.*listens at tcp:.*://p' syncer.log)
	learner ann --key ann.key
	wait_for pushed ann
}

teardown() {
	run_teardown
}

crowd() {
	background crowd python3 \
		"$abs_top_srcdir/tests/protocol/crowd.py" "$1" "$link" "${@:2}"
	wait_for has 1 "^holds" crowd.log
}

descriptors() {
	ls "/proc/${pid[syncer]}/fd" | wc -l
}

# Another learner is let in, and the run goes on.
goes_on() {
	learner ben --key ben.key
	wait_for pushed ben
	before=$(merged)
	wait_for has $((before + 3)) '"merged"' tape
}

@test "those whom nobody knows take no descriptors from those who are known" {
	crowd unknown
	[ "$(descriptors)" -lt 100 ]
	goes_on
	has 1 "refused: key .* is not authorised" syncer.log
}

@test "a key has so many connections, and no more" {
	crowd observers obs.key obs
	[ "$(descriptors)" -lt 100 ]
	has 1 "refused: obs has too many connections" syncer.log
	goes_on
}

@test "a member that comes and goes without end does not fill the log" {
	crowd again eve.key eve
	grep -q "^error welcome$" crowd.log
	[ "$(grep -c "eve is here" syncer.log)" -lt 150 ]
	has 1 "refused: eve comes too often" syncer.log
	goes_on
}
