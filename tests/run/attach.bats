#!/usr/bin/env bats
# dl-sync attach, the bridge at the far end of an exec: link, and exec: links.
# tests/run/ssh.bats puts ssh between the two.

load run.bash

setup() {
	run_setup
	socket=$BATS_TEST_TMPDIR/s
}

teardown() {
	run_teardown
}

# through [OPTION...]: links go through an attach from now on; its pid is in
# the file bridge.
through() {
	link="exec:echo \$\$ >bridge; exec dl-sync attach $* $socket"
}

# syncer_there: at its socket, before learners come through bridges.
syncer_there() {
	link=unix:$socket
	syncer "$@"
	wait_for has 1 "listens at" syncer.log
}

# The syncer has not seen anybody.
nobody_came() {
	[ -z "$(grep "is here\|: refused\|sent away" syncer.log)" ]
}

# gone PID: no such process runs.
gone() {
	[ ! -e "/proc/$1" ]
}

# hears BYTES...: what attach answers to them, in the file heard.
hears() {
	printf "$@" | dl-sync attach "$socket" >heard
}

# frame JSON: a control message without data.
frame() {
	local n=${#1}

	printf '\\x%02x\\x%02x\\x00' $(((n + 9) % 256)) $(((n + 9) / 256))
	printf '\\x%02x\\x%02x\\x00\\x00\\x00\\x00\\x00\\x00%s' \
		$((n % 256)) $((n / 256)) "$1"
}

hello() { # role name
	frame '{"__metadata__":{"dl.clock":"0","dl.codecs":"","dl.format":"1","dl.instance":"0","dl.kind":"hello","dl.layout":"","dl.learner":"'"$2"'","dl.role":"'"$1"'","dl.run":"","dl.steps":"0","dl.tokens":"0"}}'
}

@test "a run through bridges" {
	syncer_there
	through
	learner ann
	learner ben
	wait_for pushed ann 3
	wait_for pushed ben 3
	dl-join "$link" | dl-frag check -l layout.tsv -
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
	gone "$(cat bridge)"
}

@test "a bridge that dies is built again" {
	syncer_there
	through --as ann
	learner ann
	wait_for pushed ann
	kill -9 "$(cat bridge)"
	wait_for has 1 "killed by signal 9: trying again" ann.log
	wait_for has 2 "ann is here" syncer.log
	n=$(grep -c '"push".*ann' tape)
	wait_for pushed ann $((n + 3))
	dl-sync end "unix:$socket"
	ends ann
	ends syncer
}

@test "as a name: nobody else gets in" {
	syncer_there
	through --as ann
	learner ben
	ends ben 77
	grep -q "for learner ann, not for ben" ben.log
	run dl-join "$link"
	[ "$status" -eq 77 ]
	[[ "$output" == *"for learner ann only"* ]]
	run dl-sync end "$link"
	[ "$status" -eq 77 ]
	nobody_came
	through --as ann --allow observer
	dl-join "$link" -o seen.safetensors
	run dl-sync end "$link"
	[ "$status" -eq 77 ]
	learner ann
	wait_for pushed ann
	through --as ann --allow ender
	dl-sync end "$link"
	ends ann
	ends syncer
}

@test "what is no hello is refused before the syncer sees it" {
	syncer_there
	run hears 'GET / HTTP/1.0\r\n\r\n'
	[ "$status" -eq 76 ]
	grep -qa '"dl.code":"76"' heard
	run hears "$(frame '{"__metadata__":{"dl.format":"1","dl.kind":"bye","dl.reason":"done"}}')"
	[ "$status" -eq 76 ]
	[[ "$output" == *"bye comes before hello"* ]]
	# A header larger than a first message may have; data; small change.
	run hears '\x09\x00\x00\x00\x00\x20\x00\x00\x00\x00\x00'
	[ "$status" -eq 76 ]
	[[ "$output" == *"header claims 2097152"* ]]
	run hears '\x02\x00\x01x'
	[ "$status" -eq 76 ]
	heartbeats() {
		yes "$(printf '\x01')" | tr -d '\n' | head -c 5000000 |
			sed 's/./\x01\x00\x00/g' | dl-sync attach "$socket"
	}
	run heartbeats
	[ "$status" -eq 76 ]
	[[ "$output" == *"too much before hello"* ]]
	run hears '\x05'
	[ "$status" -eq 69 ]
	[[ "$output" == *"closed before hello"* ]]
	nobody_came
}

@test "a hello in pieces, and what follows it, gets through" {
	syncer_there
	pieces() {
		hello=$(hello observer '')
		printf "${hello:0:40}"
		sleep 0.1
		printf "${hello:40}"
		sleep 0.1
	}
	pieces | dl-sync attach "unix:$socket" >heard
	grep -qa '"dl.kind":"welcome"' heard
	(printf "$(hello ender '')$(frame '{"__metadata__":{"dl.format":"1","dl.kind":"end","dl.step":"0"}}')"; sleep 0.1) |
		dl-sync attach "$socket" >heard
	ends syncer
}

@test "a syncer that is not there is not there" {
	run dl-join "exec:dl-sync attach $socket"
	[ "$status" -eq 69 ]
	[[ "$output" == *"unix:$socket: connect: No such file"* ]]
	link="exec:dl-sync attach --as ann $socket"
	learner ann
	wait_for has 1 "No such file.*trying again" ann.log
	link=unix:$socket
	syncer --steps 30
	ends syncer
	ends ann
}

@test "a command that cannot work ends the learner, others are tried again" {
	link='exec:no-such-command --as ann'
	learner ann
	ends ann 69
	grep -q "the command exited with status 127" ann.log
	run dl-join "$link"
	[ "$status" -eq 69 ]
	[[ "$output" == *"no-such-command"*"status 127"* ]]
	link='exec:echo again >>tries; exit 255'
	learner ann
	wait_for has 3 again tries
	kill -TERM "${pid[ann]}"
	ends ann
	[ "$(grep -c "status 255: trying again" ann.log)" -eq 1 ]
	run dl-sync serve --store store --listen exec:cat m/model.safetensors
	[ "$status" -eq 64 ]
	for arguments in "tcp:127.0.0.1:1" "--as a/b s" "--allow all s" "s s"; do
		run dl-sync attach $arguments
		[ "$status" -eq 64 ]
	done
}

@test "a command is gone when its learner is" {
	syncer_there
	through
	learner ann
	wait_for pushed ann
	kill_hard ann
	wait_for has 1 "ann is gone" syncer.log
	wait_for gone "$(cat bridge)"
	link='exec:trap "" TERM; echo $$ >stuck; while :; do sleep 100; done'
	learner ben
	wait_for test -s stuck
	kill -TERM "${pid[ben]}"
	ends ben
	gone "$(cat stuck)"
}
