#!/usr/bin/env bats
# Strangers at the syncer's door: they cost a line in its log at most, and the
# run goes on. And strangers in the syncer's place.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# at_door: a run with one learner, and a door for strangers.
at_door() {
	background syncer dl-sync serve --store store --insecure \
		--listen "$link" --listen tcp:127.0.0.1:0 -H 6 \
		--layout layout.tsv --tape tape m/model.safetensors
	wait_for has 1 "listens at tcp" syncer.log
	port=$(sed -n 's/.*listens at tcp:.*://p' syncer.log)
	learner ann
	wait_for pushed ann
}

# says BYTES: to the syncer, which hangs up.
says() {
	exec {door}<>"/dev/tcp/127.0.0.1/$port"
	printf "$1" >&"$door"
	timeout 20 cat <&"$door" >/dev/null
	exec {door}>&-
}

goes_on() {
	before=$(merged)
	wait_for has $((before + 3)) '"merged"' tape
}

@test "nonsense is sent away with a line in the log" {
	at_door
	says 'GET / HTTP/1.0\r\n\r\n'
	wait_for has 1 "tcp:.* is sent away: frame " syncer.log
	# A push before hello, with a header larger than a stranger's may be.
	says '\x09\x00\x01\x00\x00\x20\x00\x00\x00\x00\x00'
	wait_for has 1 "is sent away: .*header claims 2097152" syncer.log
	goes_on
}

@test "one who comes to end the run and does not say so is sent away" {
	at_door
	hello='{"__metadata__":{"dl.clock":"0","dl.codecs":"","dl.format":"1",'
	hello+='"dl.instance":"0","dl.kind":"hello","dl.layout":"",'
	hello+='"dl.learner":"","dl.role":"ender","dl.run":"",'
	hello+='"dl.steps":"0","dl.tokens":"0"}}'
	says "\xc9\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00$hello"
	not grep "sent away" syncer.log
	goes_on
}

@test "a crowd that says nothing stops nobody" {
	ulimit -S -n 64
	at_door
	ulimit -S -n 256
	for i in $(seq 100); do
		exec {door}<>"/dev/tcp/127.0.0.1/$port"
	done
	goes_on
	dl-join -o live.safetensors "$link"
	not grep "Too many open files" syncer.log
}

# strangers N WHAT: so many of them keep coming.
strangers() {
	background "$2" "$abs_top_builddir/tests/run/strangers" "$port" "$@"
}

# What the syncer keeps in memory, in kB.
memory() {
	sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${pid[syncer]}/status"
}

@test "a thousand strangers stop nobody, and fill neither memory nor log" {
	# The sanitizer keeps what was freed, up to so much.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=4
	at_door
	before_all=$(memory)
	strangers 100 huge
	wait_for has 1 "away: .*header claims 9223372036854775808" syncer.log
	for what in silent slow deaf; do
		strangers 300 "$what"
	done
	wait_for has 1 "turned away: too many from there" syncer.log
	wait_for has 1 "sent away: said nothing" syncer.log
	wait_for has 1 "and [0-9]* more" syncer.log
	# Learners come in by the same door, and go.
	background ben dl-learn -n ben --scratch "$scratch" --insecure \
		"tcp:127.0.0.1:$port" -- \
		dl-train run -q -b 2 --step-time 10ms m text
	wait_for pushed ben 3
	kill "${pid[ben]}"
	ends ben
	kill_hard ann
	learner ann
	wait_for has 2 "ann is here" syncer.log
	# The deaf ask for the model too: who only takes it may have to try again.
	wait_for dl-join --insecure -o live.safetensors "tcp:127.0.0.1:$port"
	goes_on
	for what in silent slow huge deaf; do
		kill "${pid[$what]}"
		ends "$what"
	done
	cat silent.log slow.log huge.log deaf.log
	[ "$(cat silent.log)" -gt 0 ]
	[ "$(grep -c 'away: ' syncer.log)" -lt 400 ]
	wait_for memory_is_back
	goes_on
}

memory_is_back() {
	[ "$(memory)" -lt $((before_all + 32768)) ]
}

# in_place TEXT: one that is no syncer listens at the link.
in_place() {
	background babble "$abs_top_builddir/tests/run/babble" s "$@"
	wait_for [ -S s ]
}

# breaks COMMAND...: it says that the peer breaks the protocol.
breaks() {
	run timeout 20 "$@"
	[ "$status" -eq 76 ]
	[[ "$output" == *"$link: frame"* ]]
}

@test "a peer that speaks another protocol is no syncer" {
	in_place 'HTTP/1.1 400 Bad Request'
	breaks dl-learn --scratch "$scratch" "$link" -- true
	breaks dl-join -o live.safetensors "$link"
	breaks dl-sync end "$link"
}

@test "a peer that hangs up may be a syncer later" {
	in_place
	background ann dl-learn --scratch "$scratch" "$link" -- \
		dl-train run -q m text
	wait_for has 1 ": trying again" ann.log
	kill_hard babble
	rm s
	syncer --steps 6
	ends ann
}

@test "a run that nobody can reach leaves no store" {
	touch s
	run dl-sync serve --store store --listen "$link" m/model.safetensors
	[ "$status" -eq 73 ]
	[ ! -e store ]
}

# answers WHAT CODEC DAMAGE: to such a push of a learner of its own.
answers() {
	local said

	said=$("$abs_top_builddir/tests/run/pusher" "$link" \
		"eve-$2-$3" "$2" "$3")
	echo "$2 $3: $said"
	[[ "$said" == $1 ]]
}

@test "pushes that are no values cost the push or the connection" {
	at_door
	answers "* not" int4 none
	answers "refused finite" int4 nan
	answers "refused finite" int1 nan
	answers "refused finite" fp4 inf
	answers "refused finite" int8 huge
	answers "hung up" int8 name
	wait_for has 1 "eve-int8-name at .*: refused: push of fragment 0: unknown codec" syncer.log
	answers "hung up" int4 short
	wait_for has 1 "eve-int4-short at .*: refused: push of fragment 0: " syncer.log
	goes_on
	dl-join -o live.safetensors "$link"
	dl-frag check live.safetensors
}
