#!/usr/bin/env bats
# Learners of a spool (dir:): passes of dl-sync run, real learners, and what can
# happen to a folder that others share.

load run.bash

setup() {
	run_setup
	link=dir:$BATS_TEST_TMPDIR/spool
	options=(-H 6)
}

teardown() {
	touch over
	run_teardown
}

# passes [OPTION...]: a pass now and then, until the run is done.
passes() {
	options+=("$@")
	dl-sync run -q --run demo --layout layout.tsv "${options[@]}" spool \
		m/model.safetensors || [ $? -eq 75 ]
	background passes pass_on
}

pass_on() {
	until [ -e over ] || grep -qs 'state done' spool/global/latest; do
		one_pass || [ -e away ] || return
		sleep 0.1
	done
}

one_pass() {
	local code=0

	dl-sync run -v "${options[@]}" -o out.safetensors spool || code=$?
	[ $code -eq 0 ] || [ $code -eq 75 ]
}

joins() {
	local name=$1

	shift
	learner "$name" --poll 50ms "$@"
}

# said NAME WORD: its value in learner/NAME.
said() {
	sed -n "s/^# $2 //p" "spool/learner/$1" 2>/dev/null
}

# is_past NAME STEPS: it has made so many.
is_past() {
	[ "$(said "$1" steps)" -gt "$2" ]
}

# merges N: so many are committed.
merges() {
	has "$1" '"merged"' spool/store/tape
}

is_in_new() {
	[ -n "$(ls "spool/new/$1")" ]
}

# is_another NAME INSTANCE: it runs, and is not that one.
is_another() {
	[ -n "$(said "$1" instance)" ] || return 1
	[ "$(said "$1" instance)" != "$2" ]
}

@test "two learners train one model through a folder" {
	passes --steps 100 --quorum 2
	joins ann
	joins ben
	ends passes
	ends ann
	ends ben
	is_better
	[ -z "$(ls spool/new/ann spool/new/ben | grep -v :)" ]
	[ -z "$(ls spool/tmp spool/refused | grep -v :)" ]
	[ "$(said ann state)" = leaving ]
	[ -z "$(ls -A "$scratch")" ]
}

@test "narrow pushes and updates go through a folder too" {
	passes --steps 150 --global int4
	joins ann --push int4
	ends passes
	ends ann
	dl-frag show spool/update/0.* | grep -q dl.codec=int4
	is_better
}

@test "a learner waits for a spool and trains while it is away" {
	joins ann
	wait_for has 1 'trying again' ann.log
	passes
	wait_for merges 3
	touch away
	mv spool elsewhere
	wait_for has 2 'trying again' ann.log
	kill -0 "${pid[ann]}"
	sleep 0.5
	mv elsewhere spool
	now=$(said ann steps)
	wait_for is_past ann $((now + 20))
	merged=$(grep -c '"merged"' spool/store/tape)
	wait_for merges $((merged + 1))
	touch spool/end
	ends passes
	ends ann
	is_better
}

@test "a name is one learner's" {
	passes
	joins ann
	wait_for is_past ann 1
	run dl-learn -n ann --scratch "$scratch" "$link" -- true
	[ "$status" -eq 77 ]
	[[ "$output" == *"ann is at work: $(hostname) process ${pid[ann]}"* ]]
	kill_hard ann
	joins ann
	wait_for is_past ann 1
}

@test "what a killed learner has put is merged, under its old instance" {
	passes
	joins ann
	wait_for merges 2
	touch over
	ends passes
	rm over
	wait_for is_in_new ann
	first=$(said ann instance)
	kill_hard ann
	joins ann
	wait_for is_another ann "$first"
	last=$(ls spool/new/ann | head -n 1)
	one_pass
	[ ! -e "spool/new/ann/$last" ]
	grep -q "\"push\".*\"instance\":$first" <(tail -n 30 spool/store/tape)
	background passes pass_on
	touch spool/end
	ends passes
	ends ann
	is_better
	[ -z "$(ls spool/refused)" ]
}

@test "SIGTERM leaves the last work in the folder, without a syncer" {
	passes
	joins ann
	wait_for merges 2
	touch over
	ends passes
	rm over
	kill -TERM "${pid[ann]}"
	ends ann
	[ "$(said ann state)" = leaving ]
	for p in 0 1 2; do
		ls spool/new/ann | grep -q "^[0-9]*\.$p\."
	done
	one_pass
	one_pass
	[ -z "$(ls spool/new/ann)" ]
	[ -z "$(ls spool/refused)" ]
}

@test "values that are not those of latest are not taken" {
	passes
	touch over
	ends passes
	rm over
	cp spool/global/1.1.0 good
	printf x | dd of=spool/global/1.1.0 bs=1 seek=400 conv=notrunc
	joins ann -v
	wait_for has 1 'not the bytes of global/latest' ann.log
	[ ! -s spool/learner/ann ] || [ "$(said ann steps)" -eq 0 ]
	rm spool/global/1.1.0
	ln -s "$PWD/good" spool/global/1.1.0
	wait_for has 1 'Too many levels of symbolic links' ann.log
	[ "$(said ann steps)" -eq 0 ]
	rm spool/global/1.1.0
	cp good spool/global/1.1.0
	wait_for is_past ann 3
}

@test "a syncer that lost its tape finds its learners again" {
	passes
	joins ann
	wait_for merges 3
	touch over
	ends passes
	rm over spool/store/tape
	background passes pass_on
	wait_for grep -q '^# epoch 2' spool/taken/ann
	wait_for merges 1
	touch spool/end
	ends passes
	ends ann
	is_better
}

@test "dl-join takes the newest model of a spool" {
	passes
	joins ann
	wait_for merges 3
	dl-join -o now.safetensors "$link"
	dl-frag check -l layout.tsv now.safetensors
	run dl-join -o now.safetensors dir:nowhere
	[ "$status" -eq 66 ]
}
