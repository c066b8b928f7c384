#!/usr/bin/env bats
# Hostile peers of sessions, played by a second implementation: each costs a
# line in the log, nothing else; the run goes on.

load ../run/run.bash

protocol=$abs_top_srcdir/tests/protocol

setup() {
	python3 -c 'import cryptography' 2>/dev/null ||
		skip "python3-cryptography is not installed"
	run_setup
	mkdir keys
	umask 077
	for name in ann eve w0 w1 w2 w3 w4 w5 w6 w7; do
		dl-key gen >"keys/$name.key"
		echo "$(dl-key pub <"keys/$name.key") $name" >>authorized
	done
	dl-key gen | dl-key pub >keys/other.public
	dl-key gen >syncer.key
	background syncer dl-sync serve --store store --key syncer.key \
		--authorized authorized --listen tcp:127.0.0.1:0 -H 6 \
		--layout layout.tsv --tape tape m/model.safetensors
	wait_for has 1 "listens at tcp" syncer.log
	door=tcp:$(dl-key pub <syncer.key)@127.0.0.1
	door+=:$(sed -n 's/.*listens at tcp:.*://p' syncer.log)
	link=$door learner ann --key keys/ann.key
	wait_for pushed ann
}

teardown() {
	run_teardown
}

goes_on() {
	before=$(merged)
	wait_for has $((before + 3)) '"merged"' tape
}

attack() {
	timeout 120 python3 "$protocol/attacks.py" "$1" "$door" keys
}

# told N PATTERN: exactly so many lines of the syncer's log match.
told() {
	wait_for has "$1" "$2" syncer.log
	[ "$(grep -c -- "$2" syncer.log)" -eq "$1" ]
}

@test "strangers and those who take us for another are turned away" {
	run attack stranger
	echo "$output"
	[[ "$output" == error:* ]]
	told 1 "tcp:127[0-9.:]*: refused: "
	run attack wrong_key
	[[ "$output" == "gone: error 76 "* ]]
	told 1 "tcp:127[0-9.:]* is sent away: handshake: "
	goes_on
}

@test "a state is offered under one's own key only" {
	python3 - "$protocol" "$door" keys <<-'END'
		import base64, sys
		sys.path.insert(0, sys.argv[1])
		from link import Link, hello
		def offers(public):
		    secret = open(sys.argv[3] + "/eve.key").read()
		    link = Link(sys.argv[2], base64.b64decode(secret))
		    link.say("hello", hello("eve", serve=f"tcp:{public}@:7077"))
		    return link.hear(timeout=20)
		other = open(sys.argv[3] + "/other.public").read().strip()
		m = offers(other)
		assert m.kind == "error" and m.fields["code"] == "77", m
		own = [line.split()[0] for line in open("authorized")
		       if line.split()[1] == "eve"]
		assert offers(own[0]).kind == "welcome"
	END
	told 1 "refused: it serves its state by another key"
	goes_on
}

@test "a conversation that comes again changes nothing" {
	run attack replay
	echo "$output"
	[ "${lines[0]}" = welcome ]
	[ "$(grep -c ^gone: <<<"$output")" -eq 4 ]
	told 4 "tcp:127[0-9.:]* is sent away: "
	[ "$(grep -c '"join".*"learner":"eve"' tape)" -eq 1 ]
	goes_on
}

@test "frames that come twice, too early or never end the session" {
	run attack order
	echo "$output"
	[ "$(grep -c "gone: " <<<"$output")" -eq 6 ]
	goes_on
}

# What a conversation damaged at each of its bytes came to: those that got
# through hello joined, those that got through the step told of it, and none
# did anything else.
damaged() {
	attack "$1" >counts
	read -r hello step all welcome gone <counts
	echo "hello ends at $hello, step at $step, all at $all:" \
		"$welcome welcome, $gone gone"
	[ "$welcome" -eq $((all - hello)) ]
	[ "$gone" -eq "$hello" ]
	wait_for has $((welcome + 1)) "w[0-7] is gone: " syncer.log
	# One more was whole.
	[ "$(grep -c '"join".*"learner":"w' tape)" -eq $((welcome + 1)) ]
	[ "$(grep -c '"step".*"learner":"w' tape)" -eq $((all - step + 1)) ]
	away "$gone" "tcp:127[0-9.:]* is sent away: "
	told $((welcome + 1)) "w[0-7] is gone: "
	goes_on
}

@test "a bit changed at any byte ends the session, and is not acted on" {
	damaged flip
}

@test "a session cut at any byte is not acted on" {
	damaged truncate
}

@test "a bit changed at any byte of what a syncer says is not acted on" {
	output=$(timeout 120 python3 "$protocol/syncer.py" \
		syncer.key keys/ann.key "$scratch" 2>learners.log)
	echo "$output"
	read -r preface welcome values held <<<"$output"
	[ "$preface" -lt "$welcome" ]
	[ "$welcome" -lt "$values" ]
	[ "$held" -eq 41 ] # all of them, in the end
	[ "$(wc -l <<<"$output")" -eq 1 ]
	[ "$(grep -vc "trying again$" learners.log)" -eq 0 ]
}

@test "a peer that says a byte a second is sent away" {
	run attack slow
	[[ "$output" == gone:* ]]
	told 1 "tcp:127[0-9.:]* is sent away: "
	goes_on
}

@test "a learner that never reads holds nobody up" {
	background eve python3 "$protocol/attacks.py" deaf "$door" keys
	wait_for has 1 '"join".*"learner":"eve"' tape
	goes_on
	goes_on
	kill_hard eve
	told 1 "eve is gone: "
}

@test "headers that claim 2^63 bytes are refused at once" {
	run attack huge
	echo "$output"
	[ "$(grep -c "^gone: " <<<"$output")" -eq 5 ]
	told 2 "tcp:127[0-9.:]* is sent away: .*header claims 9223372036854775808"
	told 3 "eve is gone: "
	goes_on
}

@test "a learner whose connection is damaged on the way comes back" {
	background relay python3 "$protocol/relay.py" "${door#*@}" \
		30000 5 60 110 500 -5 -100 -300 -3000
	wait_for [ -s relay.log ]
	link=${door%:*}:$(cat relay.log) learner w0 --key keys/w0.key \
		--join syncer
	wait_for pushed w0 2
	has 3 "is sent away: " syncer.log
	goes_on
}
