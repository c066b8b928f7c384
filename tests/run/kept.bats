#!/usr/bin/env bats
# Checkpoints of a live run: in the background, now and then, and on demand.

load run.bash

setup() {
	run_setup
	mkdir ck
	# What the disk of ck is like (tests/chaos/control.c).
	disk sound
}

teardown() {
	run_teardown
}

# disk sound|slow|full: a slow one takes 0.3 s a call.
disk() {
	local page='\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

	case $1 in
	slow) page='\0\0\0\0\xe0\x93\x04\0\0\0\0\0\0\0\0\0' ;;
	full) page='\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' ;;
	esac
	printf "$page" | dd of=page conv=notrunc status=none
}

# keeps [OPTION...]: a syncer that makes checkpoints in ck, on that disk.
keeps() {
	background syncer env LD_PRELOAD="$abs_top_builddir/tests/chaos/shim.so" \
		ASAN_OPTIONS=verify_asan_link_order=0 \
		DL_CRASH_ROOT="$PWD/ck" DL_CHAOS_CONTROL="$PWD/page" \
		dl-sync serve --store store --listen "$link" --run demo \
		--layout layout.tsv -H 6 --tape tape -o out.safetensors \
		--checkpoint ck --checkpoint-every 12 "$@" m/model.safetensors
}

# made N: the syncer has made so many.
made() {
	has "$1" "^dl-sync: ck/demo.*: a checkpoint$" syncer.log
}

# known: a HEAD without hashes, of which the store may not have the last.
known() {
	sed -E 's/"(global|momentum)":("[0-9a-f]*"|null)//g'
}

# half_made: one is being written.
half_made() {
	compgen -G "ck/demo.*.tmp.*" >/dev/null
}

@test "the last of a run are kept, and nothing else is removed" {
	touch ck/other.1.1.tar.zst ck/demo.1.tar.zst ck/demo.1.1.1.tar.zst
	keeps --checkpoint-keep 2
	learner ann
	wait_for made 4
	kill "${pid[syncer]}"
	ends syncer
	[ "$(ls ck/demo.1.*[0-9].tar.zst | grep -vc 'demo.1.1.1.tar')" -eq 2 ]
	[ -e ck/other.1.1.tar.zst ]
	[ -e ck/demo.1.tar.zst ]
	last=$(sed -n 's/^dl-sync: \(ck.*\): a checkpoint$/\1/p' syncer.log |
		tail -n 1)
	dl-sync check "$last"
	tar --zstd -tf "$last" | grep -qx HEAD
	# It is of what the store has, as the syncer left it.
	tar --zstd -xOf "$last" HEAD | known | cmp - <(known <store/HEAD)
}

@test "those of another run of that name, further on, take no place" {
	for clock in 100000 200000 300000; do
		touch "ck/demo.1.$clock.tar.zst"
	done
	keeps --checkpoint-keep 2
	learner ann
	wait_for made 3
	kill "${pid[syncer]}"
	ends syncer
	[ "$(ls ck/demo.1.?00000.tar.zst | wc -l)" -eq 3 ]
	rm ck/demo.1.?00000.tar.zst
	[ "$(ls ck | wc -l)" -eq 2 ]
	dl-sync check ck/*
}

@test "one that is being made gives way to the last" {
	dl-train init -fq -L 1 -H 2 -d 256 -c 16 -s 3 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	disk slow
	keeps -v
	learner ann
	wait_for half_made
	kill "${pid[syncer]}"
	wait_for has 1 ": given up, there is a later one" syncer.log
	disk sound
	ends syncer
	[ "$(ls ck | wc -l)" -eq 1 ]
	tar --zstd -xOf ck/*.zst HEAD | cmp - store/HEAD
}

@test "a second signal gives up the last" {
	dl-train init -fq -L 1 -H 2 -d 256 -c 16 -s 3 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	keeps --checkpoint-every 1h
	wait_for has 1 "listens at" syncer.log
	disk slow
	kill "${pid[syncer]}"
	wait_for half_made
	kill "${pid[syncer]}"
	ends syncer
	[ -z "$(ls ck)" ]
	has 1 "^dl-sync: ck/demo.*: given up$" syncer.log
}

@test "at the end of the run there is one of the model" {
	keeps --checkpoint-every 1h --steps 60
	learner ann
	ends syncer
	ends ann
	[ "$(ls ck | wc -l)" -eq 1 ]
	dl-join -o from.safetensors ck/demo.1.*.tar.zst
	dl-frag check -e out.safetensors from.safetensors
}

@test "rounds go on while the disk is slow, and nothing half is left by a crash" {
	keeps
	learner ann
	disk slow
	wait_for half_made
	before=$(merged)
	wait_for made 1
	[ "$(merged)" -gt $((before + 5)) ]
	wait_for half_made
	kill_hard syncer
	half_made
	dl-sync check ck/*.tar.zst
	disk sound
	touch ck/demo.2.2.tar.zst.tmp.$$.0 # of one that lives
	keeps
	wait_for has 2 "listens at" syncer.log
	wait_for made 2
	[ "$(ls ck/*.tmp.*)" = "ck/demo.2.2.tar.zst.tmp.$$.0" ]
}

@test "a full disk is told of, and tried again" {
	keeps
	wait_for [ -S s ]
	disk full
	learner ann
	wait_for has 2 "No space left on device: no checkpoint this time" \
		syncer.log
	[ -z "$(ls ck)" ]
	merged=$(merged)
	disk sound
	wait_for made 1
	[ "$(merged)" -gt "$merged" ]
	kill "${pid[syncer]}"
	ends syncer
	dl-sync check ck/*.tar.zst
}

@test "a checkpoint on demand, of a run that goes on" {
	syncer --run demo
	learner ann
	wait_for pushed ann 3
	before=$(merged)
	dl-sync checkpoint "$link" now.tar.zst
	dl-sync check now.tar.zst | grep -q "run demo, epoch 1"
	dl-sync checkpoint "$link" - | tar --zstd -tf - | head -n 1 |
		grep -qx manifest.json
	wait_for has $((before + 3)) '"merged"' tape
	run dl-sync checkpoint "$link" /dev/full
	echo "$output"
	[ "$status" -eq 74 ]
	run dl-sync checkpoint "$link" nowhere/now.tar.zst
	[ "$status" -eq 73 ]
	[ -z "$(ls store/copy.* ./*.tmp.* 2>/dev/null)" ]
	# Another's program has the same, by the protocol's page.
	command -v python3 >/dev/null || skip "python3 is not installed"
	python3 "$abs_top_srcdir/tests/run/pieces.py" "$link" take by-hand.tar.zst
	dl-sync check by-hand.tar.zst
	run python3 "$abs_top_srcdir/tests/run/pieces.py" "$link" wrong
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "one at a time, and who leaves leaves nothing" {
	dl-train init -fq -L 1 -H 2 -d 256 -c 16 -s 3 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	syncer --run demo --rate 1M
	wait_for [ -S s ]
	background first dl-sync checkpoint "$link" first.tar.zst
	wait_for has 1 "[0-9] takes a checkpoint" syncer.log
	kill -STOP "${pid[first]}"
	run dl-sync checkpoint "$link" second.tar.zst
	echo "$output"
	[ "$status" -eq 75 ]
	[[ $output == *"another takes a checkpoint"* ]]
	kill "${pid[first]}"
	kill -CONT "${pid[first]}"
	ends first 143
	wait_for dl-sync checkpoint "$link" second.tar.zst
	dl-sync check second.tar.zst
	background third dl-sync checkpoint "$link" third.tar.zst
	wait_for has 3 "[0-9] takes a checkpoint" syncer.log
	kill "${pid[syncer]}"
	ends third 75
	ends syncer
	[ -z "$(ls ./*.tmp.* third.tar* first.tar* 2>/dev/null)" ]
	[ ! -e store/copy.* ]
}

@test "who may see the model may take a checkpoint" {
	for name in syncer eye eve; do
		dl-key gen -o "$name.key"
		declare "$name=$(dl-key pub "$name.key")"
	done
	echo "$eye eye observer" >authorized
	link=tcp:127.0.0.1:0
	syncer --key syncer.key --authorized authorized --listen unix:s
	wait_for has 1 "listens at tcp" syncer.log
	port=$(sed -n 's/.*listens at tcp:.*://p' syncer.log | head -n 1)
	link=tcp:$syncer@127.0.0.1:$port
	dl-sync checkpoint --key eye.key "$link" seen.tar.zst
	dl-sync check seen.tar.zst
	run dl-sync checkpoint --key eve.key "$link" stolen.tar.zst
	[ "$status" -eq 77 ]
	[ ! -e stolen.tar.zst ]
	dl-sync checkpoint \
		"exec:dl-sync attach --as eye --allow observer s" bridged.tar.zst
	dl-sync check bridged.tar.zst
	run dl-sync checkpoint "exec:dl-sync attach --as eye s" no.tar.zst
	[ "$status" -eq 77 ]
}
