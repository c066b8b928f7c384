#!/usr/bin/env bats
# What a trainer saves brings back the next one: after it died, after its
# learner was killed or preempted.

load run.bash

setup() {
	run_setup
	# dl-train, and a word of every order that is not for each step.
	cat >trainer <<-'END'
		#!/bin/sh
		exec 3>&- 4>&-
		exec python3 spy.py dl-train run -q -b 2 --step-time 10ms m text
	END
	chmod +x trainer
	cp "$abs_top_srcdir/tests/run/spy.py" .
}

teardown() {
	run_teardown
}

# spied NAME [OPTION...]: a learner whose trainer notes its orders in NAME.said
# and does what the files named in spy.py ask.
spied() {
	local name=$1
	shift
	touch "$name.said"
	background "$name" env SAID="$PWD/$name.said" dl-learn -v -n "$name" \
		--scratch "$scratch" --heartbeat 300ms "$@" "$link" -- ./trainer
}

# after PATTERN FILE: the lines of FILE behind the last that matches.
after() {
	awk -v pattern="$1" '$0 ~ pattern { out = ""; next }
		{ out = out $0 "\n" } END { printf "%s", out }' "$2"
}

# restores NAME [LAST]: since its last start the trainer got its save, then all
# fragments, then the clock, and no model.
restores() {
	after '^ready' "$1.said" >orders
	grep -m 1 -v '^ready' orders | grep '^restore'
	[ "$(grep -c '^apply [0-9]* [^ ]* set$' orders)" -ge 3 ]
	grep '^clock [0-9]*$' orders
	not grep '^load\|fresh$' orders
}

begins_anew() {
	after '^ready' "$1.said" >orders
	grep '^load' orders
	grep '^clock [0-9]* fresh$' orders
	not grep '^restore' <(after '^load' "$1.said")
}

# few FILE...: not more than two of them are there.
few() {
	[ "$(ls "$@" 2>/dev/null | wc -l)" -le 2 ]
}

went_on() {
	[ "$(after '^ready' "$1.said" | grep -c '^go')" -ge 5 ]
}

@test "a trainer that dies goes on from its last save" {
	syncer
	spied ann --save-every 5
	wait_for has 2 '^save' ann.said
	touch die
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	restores ann
	few "$scratch"/*/save.*
	ask=$(grep -c '"push".*"ann"' tape)
	wait_for pushed ann $((ask + 2))
	dl-sync end "$link"
	ends syncer
	ends ann
	is_better
	[ -z "$(ls -A "$scratch")" ]
}

@test "a trainer that dies in a save goes on from the one before" {
	syncer
	spied ann --save-every 5
	wait_for has 1 '^save' ann.said
	whole=$(sed -n 's/^save //p' ann.said | head -n 1)
	touch die-in-save
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	restores ann
	# Not the one that it died in.
	torn=$(grep -n '' ann.said | grep -m 1 -B 3 -A 1 ':torn' |
		sed -n 's/.*:save //p' | tail -n 1)
	[ "$(sed -n 's/^restore //p' ann.said | head -n 1)" != "$torn" ]
}

@test "one that dies in its first save begins anew" {
	syncer
	touch die-in-save
	spied ann --save-every 5
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	begins_anew ann
}

@test "a save that cannot be taken costs the save" {
	syncer
	touch refuse-save
	spied ann --save-every 3
	wait_for has 3 '^save' ann.said
	[ "$(grep -c 'no room: its save failed' ann.log)" -eq 1 ]
	[ -z "$(ls "$scratch"/*/save.* 2>/dev/null)" ]
	[ "$(grep -c '^ready' ann.said)" -eq 1 ]
	rm refuse-save
	wait_for has 1 "saves again" ann.log
}

@test "one that cannot be restored is given up for the model" {
	syncer
	spied ann --save-every 5
	wait_for has 1 '^save' ann.said
	touch refuse-restore die
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	begins_anew ann
	grep 'bad save: begins anew, not from its save' ann.log
	[ "$(grep -c '^ready' ann.said)" -eq 2 ]
	touch die-in-restore die
	rm refuse-restore
	wait_for has 4 '^ready' ann.said
	wait_for went_on ann
	begins_anew ann
}

@test "--state: a learner that is killed comes back warm" {
	syncer --run one
	spied ann --state state --save-every 5
	wait_for test -s state/one/ann/note
	wait_for has 4 '^save' ann.said
	kill_hard ann
	spied ann --state state --save-every 5
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	restores ann
	grep "has a save of clock" ann.log
	wait_for few state/one/ann/save.*
	dl-sync end "$link"
	ends syncer
	ends ann
	# Of a run that is over nothing is left.
	[ -z "$(ls -A state)" ]
}

@test "--state: SIGTERM saves, and the next is warm" {
	syncer --run one
	learner ben
	spied ann --state state
	wait_for pushed ann 2
	not grep '^save' ann.said
	kill -TERM "${pid[ann]}"
	ends ann
	[ "$(tail -n 2 ann.said | cut -d ' ' -f 1 | tr '\n' ' ')" = "save stop " ]
	[ -s state/one/ann/note ]
	spied ann --state state
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	restores ann
}

@test "--state: what is damaged or another's is refused by name" {
	syncer --run one
	spied ann --state state
	wait_for pushed ann
	kill -TERM "${pid[ann]}"
	ends ann
	at=state/one/ann
	save=$(ls $at/save.*)
	cp $at/note note
	sed -i 's/ann/ben/' $at/note
	spied ann --state state
	wait_for has 2 '^ready' ann.said
	wait_for went_on ann
	begins_anew ann
	grep "$at: a save of learner ben, not ann: begins anew" ann.log
	kill_hard ann
	[ ! -e "$save" ]
	cp note $at
	cp text "$save"
	spied ann --state state
	wait_for has 1 "$save: not the bytes .*: begins anew" ann.log
	wait_for has 3 '^ready' ann.said
	wait_for went_on ann
	begins_anew ann
}

@test "--state: a folder that is in use, or cannot be, costs the saves" {
	syncer --run one
	mkdir -p state/one/ann
	exec 8<state/one/ann
	flock 8
	spied ann --state state
	wait_for went_on ann
	grep "state/one/ann: another learner has it: nothing is saved" ann.log
	kill -TERM "${pid[ann]}"
	ends ann
	exec 8<&-
	touch file
	run dl-learn -n ann --state file/state "$link" -- ./trainer
	[ "$status" -eq 73 ]
	mkdir "a b"
	run dl-learn -n ann --state "a b" "$link" -- ./trainer
	[ "$status" -eq 64 ]
	run dl-learn -n ann --save-every 0 "$link" -- ./trainer
	[ "$status" -eq 64 ]
}

@test "recovery equals never having left" {
	syncer
	learner ben
	spied ann --slot 3 --seed 5 --apply blend:0.5 --save-every 7
	wait_for has 3 '^save' ann.said
	sends=$(grep -c '^send' ann.said)
	wait_for has $((sends + 3)) '^send' ann.said
	touch die
	wait_for has 2 '^ready' ann.said
	DL_LAYOUT=layout.tsv DL_SLOT=3 DL_SEED=5 \
		python3 "$abs_top_srcdir/tests/run/recover.py" ann.said \
		dl-train run -q -b 2 m text
	# It can fail: another slot's data are others.
	rm again
	run env DL_LAYOUT=layout.tsv DL_SLOT=4 DL_SEED=5 \
		python3 "$abs_top_srcdir/tests/run/recover.py" ann.said \
		dl-train run -q -b 2 m text
	[ "$status" -eq 1 ]
	[[ "$output" == *"other values of fragment"* ]]
}
