#!/usr/bin/env bats
# Daemons that crash in the middle of a run: a syncer whose store loses what was
# not synced, and learners of a spool.

load ../run/run.bash

setup() {
	run_setup
	mkdir root
}

teardown() {
	run_teardown
}

# crashing NAME DO AT PROGRAM ROOT COMMAND...: as background, below the crash
# shim (tests/crash/plan.h).
crashing() {
	local name=$1 what=$2 at=$3 program=$4 root=$5

	shift 5
	background "$name" env LD_PRELOAD="$abs_top_builddir/tests/crash/shim.so" \
		ASAN_OPTIONS=verify_asan_link_order=0 \
		DL_CRASH_PROGRAM="$program" DL_CRASH_ROOT="$PWD/$root" \
		DL_CRASH_DO="$what" DL_CRASH_AT="$at" DL_CRASH_SEED="$at" "$@"
}

# crashes NAME: it was killed, by the shim.
crashes() {
	local code=0

	wait "${pid[$1]}" 2>/dev/null || code=$?
	unset "pid[$1]"
	[ "$code" -eq 137 ]
}

# Each push was merged at most once, by what the tape says of it.
none_twice() {
	[ -z "$(grep '"event":"push"' "$1" |
		sed 's/.*\("learner".*"seq":[0-9]*\).*/\1/' | sort | uniq -d)" ]
}

serve() {
	echo dl-sync serve --store root/store --listen "$link" --tape tape \
		--layout layout.tsv -H 6 -o out.safetensors m/model.safetensors
}

@test "a syncer whose power is cut goes on from what it committed" {
	learner ann
	learner ben
	for at in 20 90 170; do
		crashing syncer mixed "$at" dl-sync root $(serve)
		crashes syncer
		rm -f tape
	done
	background syncer $(serve)
	wait_for has 6 '"merged"' tape
	grep -q '"epoch":[2-9]' root/store/HEAD
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
	[ -z "$(find root -name '*.tmp.*')" ]
}

# passes: dl-sync run again and again, until the run is over.
passes() {
	until grep -q "^# state done" root/spool/global/latest; do
		dl-sync run -q -H 6 --grace none --dead 3s \
			-o out.safetensors root/spool || [ $? -eq 75 ]
		sleep 0.1
	done
}

# Whatever has the name of a push is whole.
pushes_are_whole() {
	local file

	for file in root/spool/new/*/*; do
		[ -e "$file" ] || continue
		[ "$(b2sum -l 256 "$file" 2>/dev/null | cut -d ' ' -f 1)" = \
			"${file##*.}" ] || [ ! -e "$file" ]
	done
}

@test "a spool's learner that dies or loses its power is missed for a while" {
	dl-sync run -q -H 6 --grace none --layout layout.tsv root/spool \
		m/model.safetensors || [ $? -eq 75 ]
	link=dir:root/spool
	learner ann --poll 100ms
	background passes passes
	for crash in "kill 3" "power 14" "kill 30" "mixed 40"; do
		crashing ben $crash dl-learn root/spool \
			dl-learn -n ben --scratch "$scratch" --poll 100ms \
			"$link" -- dl-train run -q -b 2 --step-time 10ms m text
		crashes ben
		pushes_are_whole
	done
	learner ben --poll 100ms
	wait_for grep -q '"merged"' root/spool/store/tape
	touch root/spool/end
	ends passes
	ends ann
	ends ben
	is_better
	none_twice root/spool/store/tape
	pushes_are_whole
}
