#!/usr/bin/env bats
# Runs by sessions: over tcp, with keys.

load run.bash

setup() {
	run_setup
	for name in syncer ann bob eve; do
		dl-key gen -o "$name.key"
		declare -g "$name=$(dl-key pub "$name.key")"
	done
	printf '%s ann\n%s bob end\n' "$ann" "$bob" >authorized
}

teardown() {
	run_teardown
}

# serves [OPTION...]: a syncer with a key, at the port of the one before.
serves() {
	link=tcp:127.0.0.1:${port:-0}
	syncer --key syncer.key --authorized authorized "$@"
	wait_for has $((++begun)) "listens at tcp" syncer.log
	port=$(sed -n 's/.*listens at tcp:.*://p' syncer.log | head -n 1)
	link=tcp:$syncer@127.0.0.1:$port
}

# sent_away STATUS TEXT COMMAND...: it ends so, and says that.
sent_away() {
	local code=$1 text=$2
	shift 2
	run timeout 20 "$@"
	echo "$output" | head -n 2
	[ "$status" -eq "$code" ]
	[[ $output == *"$text"* ]]
}

@test "a whole run by sessions" {
	serves
	learner ann --key ann.key
	learner bob --key bob.key
	wait_for pushed ann 3
	wait_for pushed bob 3
	dl-join --key bob.key -o live.safetensors "$link"
	dl-frag check live.safetensors
	dl-sync end --key bob.key "$link"
	has 1 "bob at tcp:.* asks for the end" syncer.log
	ends ann
	ends bob
	ends syncer
	is_better
}

@test "learners come back after their syncer did not stop well" {
	serves
	learner ann --key ann.key
	wait_for pushed ann
	kill_hard syncer
	wait_for has 1 "trying again" ann.log
	serves
	wait_for has 2 "ann is here" syncer.log
	merged=$(merged)
	wait_for has $((merged + 3)) '"merged"' tape
}

@test "a learner waits for a syncer that is not there yet" {
	serves
	kill_hard syncer
	learner ann --key ann.key
	wait_for has 1 "trying again" ann.log
	serves
	wait_for pushed ann
}

@test "who has no key, or the wrong one, is told so" {
	serves
	sent_away 77 "key $eve is not authorised" \
		dl-learn --key eve.key "$link" -- true
	wait_for has 1 "refused: key $eve is not authorised" syncer.log
	sent_away 77 "not authorised" dl-join --key eve.key "$link"
	link=tcp:$eve@127.0.0.1:$port
	sent_away 76 "this syncer has another key" \
		dl-learn --key ann.key "$link" -- true
	wait_for has 1 "sent away: .*another syncer's key" syncer.log
	sent_away 76 "another key" dl-sync end --key bob.key "$link"
	sent_away 76 "sessions of dl-tools only" \
		dl-join --insecure "tcp:127.0.0.1:$port"
	wait_for has 1 "sent away: preface" syncer.log
	not grep "is here" syncer.log
}

@test "a plain syncer knows no sessions" {
	link=tcp:127.0.0.1:0
	syncer --insecure
	wait_for has 1 "listens at tcp" syncer.log
	port=$(sed -n 's/.*listens at tcp:.*://p' syncer.log)
	link=tcp:$syncer@127.0.0.1:$port
	sent_away 76 "no sessions here" \
		dl-learn --key ann.key "$link" -- true
	wait_for has 1 "sent away: asks for a session" syncer.log
}

@test "learners of another run are sent away" {
	serves --run first
	learner ann --key ann.key
	wait_for pushed ann
	kill_hard syncer
	rm -r store
	serves --run second
	ends ann 65
	grep "run second" ann.log
}

# says BYTES: to the syncer; what it answers.
says() {
	exec {door}<>"/dev/tcp/127.0.0.1/$port"
	printf "$1" >&"$door"
	timeout 20 cat <&"$door" | tr '\0' 0
	exec {door}>&-
}

@test "strangers are sent away with a line in the log, and a word" {
	serves
	[[ $(says 'GET / HTTP/1.0\r\n') == "error 76 sessions of "* ]]
	[[ $(says 'dl-tools 7,8 ChaChaPoly -\n') == "error 76 no version"* ]]
	[[ $(says 'dl-tools 1 Enigma -\n') == "error 76 no suite"* ]]
	[[ $(says 'dl-tools 1 ChaChaPoly x\n') == "error 65 no run x here" ]]
	says 'dl-tools 1 ChaChaPoly -\n\x6f\x00' |
		grep "^dl-tools 1 ChaChaPoly$"
	wait_for has 5 "tcp:127.0.0.1:.* is sent away: " syncer.log
	says 'dl-tools 1 ' # and no more
	wait_for has 1 "sent away: said nothing" syncer.log
	[ "$(grep -c "sent away" syncer.log)" -eq 6 ]
}

@test "options that mean nothing for a link are refused" {
	link=tcp:$syncer@127.0.0.1:9
	sent_away 64 "--insecure: for plain tcp" dl-learn --insecure \
		--key ann.key "$link" -- true
	for l in unix:s dir:s exec:true; do
		sent_away 64 "--insecure: for plain" dl-learn --insecure $l -- true
		sent_away 64 "--insecure: for plain" dl-join --insecure $l
		sent_away 64 "--insecure: for plain" dl-sync end --insecure $l
	done
	sent_away 64 "--insecure: for plain" dl-join --insecure \
		m/model.safetensors
	sent_away 64 "--insecure: for plain" dl-sync serve --store store \
		--insecure --listen unix:s m/model.safetensors
	sent_away 64 "KEY@HOST:PORT only" dl-sync end --key bob.key .
	sent_away 64 "--window: for several" dl-sync serve --store store \
		--streams 1 --window 2Mi --listen unix:s m/model.safetensors
	sent_away 64 "--poll: for folders" dl-learn --poll 1 unix:s -- true
	sent_away 64 "--heartbeat: not" dl-learn --heartbeat 1 dir:s -- true
	sent_away 64 "--quiet: options stand before" dl-learn unix:s --quiet true
	[ ! -e store ]
}

@test "keys are looked after" {
	link=tcp:$syncer@127.0.0.1:9
	serve=(dl-sync serve --store store --layout layout.tsv -H 6)
	sent_away 64 "needs --key" dl-learn "$link" -- true
	sent_away 64 "no public key" dl-join --key ann.key tcp:x@127.0.0.1:9
	sent_away 64 "KEY@HOST:PORT only" dl-join --key ann.key tcp:127.0.0.1:9
	sent_away 64 "KEY@HOST:PORT only" dl-sync end --key ann.key unix:s
	sent_away 64 "needs --key" dl-join "$link"
	sent_away 64 "--authorized" "${serve[@]}" --key syncer.key \
		--listen tcp:127.0.0.1:0 m/model.safetensors
	sent_away 64 "--insecure" "${serve[@]}" --key syncer.key --insecure \
		--authorized authorized --listen tcp:127.0.0.1:0 \
		m/model.safetensors
	sent_away 64 "for tcp only" "${serve[@]}" --key syncer.key \
		--authorized authorized --listen unix:s m/model.safetensors
	sent_away 64 "the key there is ours" "${serve[@]}" --key syncer.key \
		--authorized authorized --listen "$link" m/model.safetensors
	sent_away 64 "needs --key" "${serve[@]}" --authorized authorized \
		--listen tcp:127.0.0.1:0 m/model.safetensors
	sent_away 64 "nobody can be at port 0" dl-learn --key ann.key \
		"tcp:$syncer@127.0.0.1:0" -- true
	# Another's secret key is in no message, nor is ours.
	sent_away 69 "tcp:$(head -c 8 bob.key)...@127.0.0.1:9: " dl-join \
		--key ann.key "tcp:$(cat bob.key)@127.0.0.1:9"
	[[ "$output" != *"$(cat bob.key)"* ]]
	sent_away 64 "sessions need --key and --authorized" "${serve[@]}" \
		--listen tcp:127.0.0.1:0 m/model.safetensors
	sent_away 64 "our secret key" \
		dl-join --key ann.key "tcp:$(cat ann.key)@127.0.0.1:9"
	[[ $output != *"$(cat ann.key)"* ]]
	mkfifo -m 644 pipe
	cat ann.key >pipe &
	sent_away 77 "pipe: mode 0644" dl-learn --key pipe "$link" -- true
	chmod 600 pipe
	cat ann.key >pipe &
	sent_away 69 "refused" dl-join --key pipe "$link"
	chmod 644 ann.key
	sent_away 77 "ann.key: mode 0644" \
		dl-learn --key ann.key "$link" -- true
	sent_away 66 "none.key" dl-learn --key none.key "$link" -- true
	[ ! -e store ]
}
