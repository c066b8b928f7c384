#!/usr/bin/env bats
# What keys are good for: authorized_learners.

load run.bash

setup() {
	run_setup
	for name in syncer ann bob eve site2; do
		dl-key gen -o "$name.key"
		declare -g "$name=$(dl-key pub "$name.key")"
	done
	authorize "$ann ann" "$bob bob end"
}

teardown() {
	run_teardown
}

# authorize LINE...: from the next start or SIGHUP on.
authorize() {
	printf '%s\n' "$@" >authorized.new
	mv authorized.new authorized
}

# serves [OPTION...]: a syncer with a key.
serves() {
	link=tcp:127.0.0.1:0
	syncer --key syncer.key --authorized authorized "$@"
	wait_for has 1 "run run-" syncer.log
	link=tcp:$syncer@$(sed -n 's/.*listens at tcp://p' syncer.log)
}

# hangup: the syncer has read the file again, or said that it cannot.
hangup() {
	local n=$(grep -c "authorized: \|what was read before" syncer.log)

	kill -HUP "${pid[syncer]}"
	wait_for has $((n + 1)) "authorized: \|what was read before" syncer.log
}

# sent_away TEXT COMMAND...: not authorised, for that reason.
sent_away() {
	local text=$1
	shift
	run timeout 20 "$@"
	echo "$output" | head -n 2
	[ "$status" -eq 77 ]
	[[ $output == *"$text"* ]]
}

# pushes NAME: how many it has made.
pushes() {
	grep -c "\"push\".*\"learner\":\"$1\"" tape || true
}

# goes_on NAME: its pushes still come.
goes_on() {
	wait_for pushed "$1" $(($(pushes "$1") + 2))
}

# replays TAPE: it and what was recorded make the store again.
replays() {
	dl-sync replay -q --store again --layout layout.tsv --record record \
		"$1" m/model.safetensors >/dev/null
	diff -r store/global again/global
	diff -r store/momentum again/momentum
}

@test "a key does what its line says, and nothing else" {
	authorize "$ann ann" "$bob bob observer end" \
		"$eve eve expires=2026-01-31T10:20:30Z" "$site2 site2 max=2"
	serves
	background nobody dl-learn --scratch "$scratch" --key ann.key \
		"$link" -- dl-train run -q -b 2 --step-time 10ms m text
	wait_for pushed ann
	kill -TERM "${pid[nobody]}"
	ends nobody
	sent_away "this key is for ann, not for bob" \
		dl-learn -n bob --key ann.key "$link" -- true
	sent_away "this key is for site2.0 to site2.1, not for site2.2" \
		dl-learn -n site2.2 --key site2.key "$link" -- true
	sent_away "bob may only take the model" \
		dl-learn -n bob --key bob.key "$link" -- true
	sent_away "the key of eve expired at 2026-01-31T10:20:30Z" \
		dl-join --key eve.key "$link"
	sent_away "ann may not end the run" \
		dl-sync end --key ann.key "$link"
	[ "$(grep -c "refused: " syncer.log)" -eq 5 ]
	dl-join -q --key ann.key -o ann.safetensors "$link"
	dl-join -q --key bob.key -o bob.safetensors "$link"
	cmp ann.safetensors bob.safetensors
	dl-sync end --key bob.key "$link"
	ends syncer
}

@test "what was read is said, and a fragment that nobody has" {
	authorize "# ours" "$ann ann fragments=0-2" "$bob bob fragments=1,3-9"
	serves
	[ "$(grep -c "authorized: 2 keys" syncer.log)" -eq 1 ]
	[ "$(grep -c "authorized:3: fragment 3: the layout has 3" \
		syncer.log)" -eq 1 ]
	[ "$(grep -c "the layout has" syncer.log)" -eq 1 ]
	authorize "$ann ann fragments=0-7"
	hangup
	[ "$(grep -c "authorized: 1 key$" syncer.log)" -eq 1 ]
	[ "$(grep -c "authorized:1: fragment 3: the layout has 3" \
		syncer.log)" -eq 1 ]
}

@test "a file that says too much is not taken" {
	serve=(dl-sync serve --store store --layout layout.tsv -H 6
		--listen tcp:127.0.0.1:0 --key syncer.key
		--authorized authorized m/model.safetensors)
	authorize "$ann ann" "$bob bob admin"
	run "${serve[@]}"
	[ "$status" -eq 65 ]
	[[ $output == *'authorized:2: no such option: "admin"'* ]]
	authorize "$ann ann"
	chmod 620 authorized
	sent_away "authorized: mode 0620 lets others write it" "${serve[@]}"
	rm authorized
	run "${serve[@]}"
	[ "$status" -eq 66 ]
	[ ! -e store ]
}

@test "fragments that a key may not push are refused, and not waited for" {
	authorize "$ann ann fragments=0,2" "$bob bob end"
	serves --quorum 2 --record record
	learner ann --key ann.key
	learner bob --key bob.key
	wait_for has 2 '"barred".*"ann"' tape
	wait_for pushed ann 4
	wait_for has 3 '"merged".*"fragment":0' tape
	wait_for has 3 '"merged".*"fragment":2' tape
	[ "$(grep '"push".*"ann"' tape | grep -c '"fragment":1,')" -eq 0 ]
	[ "$(grep '"barred".*"ann"' tape | grep -c '"fragment":[02],')" -eq 0 ]
	has 1 "push .* of fragment 1 was refused: barred" ann.log
	dl-sync end --key bob.key "$link"
	ends ann
	ends bob
	ends syncer
	dl-stat tape | grep "^ann .*barred:[1-9]"
	replays tape
}

@test "a line that goes takes its session along" {
	serves
	learner ann --key ann.key
	learner bob --key bob.key
	wait_for pushed ann
	wait_for pushed bob
	authorize "$ann ann" "$bob" # not a name
	hangup
	has 1 "authorized:2: a key without a name: what was read" syncer.log
	goes_on bob
	authorize "$ann ann"
	hangup
	ends bob 77
	has 1 "the key of bob was removed" bob.log
	[ "$(grep -c "bob at tcp:.* is sent away: the key of bob was removed" \
		syncer.log)" -eq 1 ]
	wait_for has 1 '"leave".*"bob"' tape
	sent_away "key $bob is not authorised" dl-join --key bob.key "$link"
	goes_on ann
	# A new key gets in; a line that changes brings its learner back.
	authorize "$ann ann end" "$eve eve"
	hangup
	learner eve --key eve.key
	wait_for has 2 '"join".*"ann"' tape
	has 1 "the rights of ann have changed" ann.log
	wait_for pushed eve
	goes_on ann
	dl-sync end --key ann.key "$link"
	ends ann
	ends eve
	ends syncer
}

@test "a session ends when its key expires" {
	serves
	learner ann --key ann.key
	learner bob --key bob.key
	wait_for pushed ann
	authorize "$ann ann expires=$(date -u -d '4 seconds' +%FT%TZ)" "$bob bob"
	hangup
	ends ann 77
	has 1 "the key of ann expired at " ann.log
	has 1 "ann at tcp:.* is sent away: the key of ann expired" syncer.log
	goes_on bob
}

@test "the tape may be moved away" {
	serves --record record
	learner ann --key ann.key
	wait_for pushed ann
	mv tape tape.1
	hangup
	goes_on ann
	kill -TERM "${pid[syncer]}"
	ends syncer
	run dl-stat tape
	[ "$status" -eq 65 ]
	cat tape.1 tape >whole
	replays whole
}

# Its push bytes never come faster than that, by the times on the tape.
@test "who has a rate is read no faster" {
	authorize "$ann ann rate=40K" "$bob bob"
	serves
	learner ann --key ann.key
	learner bob --key bob.key
	wait_for pushed ann 4
	wait_for pushed bob 10
	awk -F '[:,}]' '/"ann"/ && /"(join|push)"/ {
		for (i = 1; i < NF; i++) {
			if ($i == "\"wall\"")
				wall = $(i + 1) / 1e9
			if ($i == "\"bytes\"")
				bytes += $(i + 1)
		}
		if (!began)
			began = wall
		if (bytes > 40000 * (wall - began) + 8000)
			exit bad = 1
	} END { exit bad || bytes < 40000 }' tape
}

# machine WHO [TIME]: one of those that were made from one image. It is heard at
# least so often.
machine() {
	background "$1" dl-learn -q --scratch "$scratch" \
		--heartbeat "${2-300ms}" --key site2.key "$link" -- sh -c \
		'echo "$0 $DL_NAME $DL_SLOT" >>slots
		exec dl-train run -q -b 1 --step-time "$1" m text' \
		"$1" "${2-100ms}"
}

# slot WHO: its number.
slot() {
	awk -v who="$1" '$1 == who { slot = $3 } END { print slot }' slots
}

@test "eight machines with one key are eight learners" {
	authorize "$site2 site2 max=8" "$bob bob end"
	serves
	for who in a b c d e f g h; do
		machine $who
	done
	touch slots
	wait_for has 8 "" slots
	awk '{ print $2, $3 }' slots | sort >seen
	for k in 0 1 2 3 4 5 6 7; do
		echo "site2.$k $k"
	done | diff - seen
	sent_away "all 8 names of site2 are taken, site2." \
		dl-learn -n site2 --key site2.key "$link" -- true
	# The next gets the place of one that is gone, or is found silent.
	kill_hard c
	wait_for has 1 "site2.$(slot c) is gone" syncer.log
	machine i
	wait_for has 9 "" slots
	[ "$(slot i)" = "$(slot c)" ]
	kill -STOP "${pid[f]}"
	machine j
	wait_for has 10 "" slots
	[ "$(slot j)" = "$(slot f)" ]
	kill -CONT "${pid[f]}"
	ends f 77
	has 1 "site2.$(slot f) is taken by tcp:" f.log
	wait_for pushed "site2.$(slot j)"
	dl-sync end --key bob.key "$link"
	for who in a b d e g h i j; do
		ends $who
	done
	ends syncer
}

@test "who is silent is found among those who speak seldom" {
	authorize "$site2 site2 max=3" "$bob bob end"
	serves
	machine a 1500ms
	machine b 1500ms
	machine c
	touch slots
	wait_for has 3 "" slots
	wait_for pushed "site2.$(slot c)"
	# It was heard a moment ago, later than the others.
	kill -STOP "${pid[c]}"
	machine d
	wait_for has 4 "" slots
	[ "$(slot d)" = "$(slot c)" ]
	kill_hard c
	dl-sync end --key bob.key "$link"
	for who in a b d; do
		ends $who
	done
	ends syncer
}

@test "who comes back keeps its number" {
	authorize "$site2 site2 max=3" "$bob bob end"
	serves
	machine a
	touch slots
	wait_for has 1 "" slots
	machine b
	wait_for has 2 "" slots
	kill_hard a
	wait_for has 1 "site2.0 is gone" syncer.log
	# A change makes b connect again: not as number 0.
	authorize "$site2 site2 max=2" "$bob bob end"
	hangup
	wait_for has 2 "site2.1 is here" syncer.log
	machine c
	wait_for has 3 "" slots
	[ "$(slot c)" = 0 ]
	dl-sync end --key bob.key "$link"
	ends b
	ends c
	ends syncer
}
