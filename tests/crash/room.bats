#!/usr/bin/env bats
# Disks that fill up under a run: syncers and learners say so, lose nothing, and
# go on when there is room again.

load ../run/run.bash

setup() {
	[ "$(id -u)" -eq 0 ] || skip "only root may mount"
	run_setup
	mkdir disk
	mount -t tmpfs -o size=8m tmpfs disk 2>/dev/null ||
		skip "no file system can be mounted here"
	# A size of 0 stands for no limit.
	echo something >disk/else
}

teardown() {
	touch over
	run_teardown
	! mountpoint -q disk || umount disk
}

# room KBYTES: so much is left on the disk, and no more. Others may write to it
# meanwhile.
room() {
	local used

	until used=$(df --output=used -k disk | tail -n 1) &&
		mount -o remount,size=$((used + $1))k disk; do
		sleep 0.01
	done
}

plenty() {
	mount -o remount,size=8m disk
}

# pass SPOOL [OPTION...]: of dl-sync run; its exit status in $status.
pass() {
	run dl-sync run -H 6 --grace none "${@:2}" "$1"
	echo "$output"
}

# until_it_fits COMMAND...: with more room each time; until there is enough the
# disk is full, and it says so.
until_it_fits() {
	local k

	for ((k = 0; k < 200; k += 8)); do
		room $k
		"$@"
		[ "$status" -eq 73 ] || [ "$status" -eq 74 ] || break
		[[ $output == *"dl-sync: disk/spool"*": No space left on device"* ]]
		[ -z "$(find disk -name '*.tmp.*')" ]
	done
	[ "$k" -gt 0 ]
	plenty
}

# first SPOOL: the pass that makes it.
first() {
	run dl-sync run --run demo -H 6 --grace none --layout layout.tsv "$1" \
		m/model.safetensors
	echo "$output"
}

# hello SPOOL STEPS: of ann, who has made so many.
hello() {
	{
		printf '# dl-spool 1\n# instance 1\n# clock %s\n' "$2"
		printf '# steps %s\n# tokens %s\n# loss 2.5\n' "$2" "$2"
		printf '# state training\n# layout -\n#fragment\tversion\n'
		awk '/^[0-9]/ { print $1 "\t" $2 }' "$1/global/latest"
	} >"$1/learner/ann"
}

# push SPOOL: of ann, for the round of step 6.
push() {
	"$abs_top_builddir/tests/run/spool_push" "$1" ann 1 0 1 6 6 6
}

# data RECORD: what follows its header.
data() {
	tail -c +$(($(od -A n -t u8 -N 8 "$1") + 9)) "$1"
}

@test "passes over a spool whose disk is full" {
	until_it_fits first disk/spool
	[ "$status" -eq 75 ]
	first spool
	for spool in spool disk/spool; do
		hello "$spool" 0
		pass "$spool"
		hello "$spool" 6
		push "$spool"
	done
	pass spool
	[ "$status" -eq 0 ]
	until_it_fits pass disk/spool
	pass disk/spool
	for folder in global store/global store/momentum; do
		cmp <(data spool/$folder/0.1.1) \
			<(data disk/spool/$folder/0.*.1)
	done
	[ -z "$(ls disk/spool/new/ann)" ]
	diff <(grep -v epoch spool/taken/ann) \
		<(grep -v epoch disk/spool/taken/ann)
}

# pass_on: a pass now and then, until the run is done.
pass_on() {
	local code

	until [ -e over ] || grep -q 'state done' disk/spool/global/latest; do
		code=0
		dl-sync run -q -H 6 --grace none -o out.safetensors \
			disk/spool || code=$?
		[ $code -eq 0 ] || [ $code -eq 75 ]
		sleep 0.1
	done
}

# every_push_once TAPE: of each fragment, seq after seq, and none lost.
every_push_once() {
	grep '"event":"push"' "$1" >pushes
	for p in 0 1 2; do
		grep "\"fragment\":$p," pushes | grep -o '"seq":[0-9]*' |
			cut -d : -f 2 >seqs
		[ -s seqs ]
		diff seqs <(seq "$(wc -l <seqs)")
	done
}

@test "a learner whose spool is full trains on and puts its pushes later" {
	first disk/spool
	background passes pass_on
	link=dir:disk/spool
	learner ann --poll 50ms
	wait_for has 2 '"merged"' disk/spool/store/tape
	touch over
	ends passes
	rm over
	room 0
	wait_for has 1 'No space left on device: trying again' ann.log
	steps=$(sed -n 's/^# steps //p' disk/spool/learner/ann)
	sleep 0.3
	plenty
	wait_for has 1 'can be written again' ann.log
	merged=$(grep -c '"merged"' disk/spool/store/tape)
	background passes pass_on
	wait_for has $((merged + 3)) '"merged"' disk/spool/store/tape
	touch disk/spool/end
	ends passes
	ends ann
	is_better
	every_push_once disk/spool/store/tape
}

@test "a syncer whose store is full commits when there is room" {
	mkdir pushes
	background syncer dl-sync serve --store disk/store --listen "$link" \
		--layout layout.tsv -H 6 --tape tape --record pushes \
		-o out.safetensors m/model.safetensors
	learner ann
	learner ben
	wait_for has 2 '"merged"' tape
	room 0
	wait_for has 1 'No space left on device: cannot commit, trying again' \
		syncer.log
	before=$(cat disk/store/HEAD)
	merged=$(merged)
	sleep 0.5
	[ "$(cat disk/store/HEAD)" = "$before" ]
	[ "$(merged)" -eq "$merged" ]
	plenty
	wait_for has $((merged + 4)) '"merged"' tape
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
	dl-sync replay --layout layout.tsv --store disk/again --record pushes \
		tape m/model.safetensors
	diff -r disk/store/global disk/again/global
	diff -r disk/store/momentum disk/again/momentum
}

# What learners were told of is not lost in silence.
@test "merges that are told of and cannot be committed are an error" {
	for end in term end; do
		rm -rf disk/store tape syncer.log
		syncer --store disk/store --commit 4
		learner ann
		wait_for has 3 '"merged"' tape
		room 0
		wait_for has 1 'cannot commit, trying again' syncer.log
		room 40
		sleep 1.5
		room 0
		if [ $end = term ]; then
			kill "${pid[syncer]}"
		else
			dl-sync end "$link"
		fi
		status=0
		wait "${pid[syncer]}" || status=$?
		unset "pid[syncer]"
		[ "$status" -eq 73 ] || [ "$status" -eq 74 ]
		has 1 'No space left.*: the merges since the last commit are lost' \
			syncer.log
		[ "$(ls disk/store/global | wc -l)" -eq 3 ]
		# The end of the run is its end.
		kill_hard ann || true
		plenty
	done
	dl-frag check out.safetensors
}
