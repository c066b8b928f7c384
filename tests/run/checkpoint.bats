#!/usr/bin/env bats
# Checkpoints: a run that goes on from one, and what is not taken for one.

load run.bash

setup() {
	run_setup
	# A store of run demo, at its beginning.
	dl-sync serve --run demo --store first --listen "unix:$PWD/first.s" \
		--layout layout.tsv m/model.safetensors >first.log 2>&1 3>&- &
	pid[first]=$!
	wait_for has 1 "clock 0" first.log
	kill -TERM "${pid[first]}"
	ends first
}

teardown() {
	run_teardown
}

pack() {
	"$abs_top_builddir/tests/run/pack" "$@"
}

alter() {
	python3 "$abs_top_srcdir/tests/run/alter.py" "$@"
}

# goes_on FROM [OPTION...]: a syncer starts from it, and is stopped.
goes_on() {
	rm -rf next next.log
	background next dl-sync serve --store next --listen "unix:$PWD/n" \
		--from "$@"
	wait_for has 1 "goes on" next.log
	kill -TERM "${pid[next]}"
	ends next
}

# stays_away CODE FROM [OPTION...]: no syncer starts from it, and no store is
# made.
stays_away() {
	local code=$1
	shift
	run dl-sync serve --store never --listen "unix:$PWD/n" --from "$@"
	echo "$output"
	[ "$status" -eq "$code" ]
	[ ! -e never/HEAD ]
}

@test "learners that are ahead go on from a checkpoint, and the loss falls" {
	syncer --run demo
	learner ann
	learner ben
	wait_for pushed ann 3
	kill -TERM "${pid[syncer]}"
	ends syncer
	pack store saved.tar.zst
	dl-join -o saved.safetensors saved.tar.zst
	syncer
	wait_for has 2 '"join".*"ann"' tape
	before=$(grep -c '"push".*"ann"' tape)
	wait_for pushed ann $((before + 3))
	kill_hard syncer
	lost=$(sed 's/.*"epoch":\([0-9]*\).*/\1/; q' store/HEAD)
	rm -rf store tape
	background syncer dl-sync serve --from saved.tar.zst --run demo \
		--store store --listen "$link" --tape tape -o out.safetensors
	wait_for has 1 '"join".*"ann"' tape
	wait_for has 1 '"join".*"ben"' tape
	wait_for pushed ann 4
	wait_for pushed ben 4
	wait_for has 4 '"merged"' tape
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
	# Better than what was saved, and no version was issued twice.
	awk -v before="$(held_out saved.safetensors)" \
		-v after="$(held_out out.safetensors)" \
		'BEGIN { exit !(after < before) }'
	[ "$(sed 's/.*"epoch":\([0-9]*\).*/\1/; q' store/HEAD)" -gt "$lost" ]
}

@test "tar lists it, and what tar extracts is a store" {
	pack first one.tar.zst
	tar --zstd -tvf one.tar.zst >list
	[ "$(awk '{ print $1 }' list | sort -u)" = -rw-r--r-- ]
	[ "$(awk '{ print $2 }' list | sort -u)" = 0/0 ]
	[ "$(awk '{ print $6 }' list)" = "manifest.json
HEAD
layout.tsv
global/0.1.0
momentum/0.1.0
global/1.1.0
momentum/1.1.0
global/2.1.0
momentum/2.1.0" ]
	mkdir out
	tar --zstd -xf one.tar.zst -C out
	for file in HEAD layout.tsv global/0.1.0 momentum/2.1.0; do
		cmp "first/$file" "out/$file"
	done
	dl-sync check out first one.tar.zst >lines
	[ "$(sort -u -k 2 lines | wc -l)" -eq 1 ]
	[[ "$(cat lines)" == "out: run demo, epoch 1, clock 0, 3 fragments, "* ]]
	background out dl-sync serve --store out --listen "unix:$PWD/o"
	wait_for has 1 "goes on: epoch 2" out.log
	kill -TERM "${pid[out]}"
	ends out
	dl-join one.tar.zst | dl-frag check -e m/model.safetensors -
}

@test "what is damaged is refused by name, and the older one is used" {
	mkdir saved
	pack first saved/old.tar.zst
	pack first new
	for how in bit missing extra newer symlink; do
		alter $how new "saved/$how.tar.zst"
	done
	head -c 5000 new >saved/torn.tar.zst
	run dl-sync check saved/*
	echo "$output"
	[ "$status" -eq 65 ]
	is() {
		grep -qF "dl-sync: saved/$1.tar.zst: $2" <<<"$output"
	}
	is bit "global/0.1.0: not the bytes that its manifest names"
	is missing "global/0.1.0: missing, there is momentum/0.1.0 in its place"
	is extra "../../extra: not in its manifest"
	is newer "manifest.json: format 2: made by a newer dl-tools"
	is symlink "global/0.1.0: not a regular file"
	is torn "zstd: ends inside a frame"
	grep -q "^saved/old.tar.zst: run demo, epoch 1, clock 0" <<<"$output"
	[ "${#lines[@]}" -eq 7 ]
	each=$output
	mkfifo saved/pipe.tar.zst
	run dl-sync check saved
	echo "$output"
	[ "$status" -eq 65 ]
	[ "$(grep -v pipe <<<"$output" | sort)" = "$(sort <<<"$each")" ]
	grep -qF "saved/pipe.tar.zst: not a file" <<<"$output"
	rm saved/pipe.tar.zst

	goes_on saved
	[ "$(grep -c 'passed over$' next.log)" -eq 6 ]
	grep -q "saved/old.tar.zst: run demo.* in next now" next.log
	for how in bit missing extra newer symlink torn; do
		stays_away 65 "saved/$how.tar.zst"
		run dl-join -o never "saved/$how.tar.zst"
		[ "$status" -eq 65 ]
		[ ! -e never ]
	done
	rm saved/old.tar.zst
	stays_away 65 saved
	[[ "$output" == *"saved: no sound checkpoint in it"* ]]
}

@test "the newest is taken, of the run that is asked for" {
	mkdir saved
	pack first saved/b.tar.zst
	pack first saved/a.tar.zst
	cp saved/b.tar.zst saved/c.tar.zst
	goes_on saved
	grep -q "saved/a.tar.zst: run demo" next.log
	goes_on saved --run demo
	stays_away 65 saved --run other
	stays_away 65 saved/a.tar.zst --run other
	[[ "$output" == *"saved/a.tar.zst: of run demo, not other" ]]
	stays_away 64 saved -H 7
	stays_away 64 saved m/model.safetensors
	stays_away 66 nowhere
	stays_away 66 m
	dl-sync serve --run other --store second --listen "unix:$PWD/s2" \
		m/model.safetensors >second.log 2>&1 3>&- &
	pid[second]=$!
	wait_for has 1 "clock 0" second.log
	kill -TERM "${pid[second]}"
	ends second
	pack second saved/d.tar.zst
	stays_away 64 saved
	[[ "$output" == *"has runs demo and other: which --run?"* ]]
	goes_on saved --run demo
	grep -q "saved/a.tar.zst: run demo" next.log
	# A store is not written over.
	run dl-sync serve --store next --listen "unix:$PWD/n" --from saved
	[ "$status" -eq 73 ]
	[[ "$output" == *"next: there is a store already" ]]
}

@test "a wall clock that was set back makes nothing older" {
	mkdir saved
	pack first first.tar.zst
	alter later first.tar.zst saved/first.tar.zst
	goes_on saved
	pack next saved/second.tar.zst
	grep -q "first.tar.zst: made [0-9hms]* after now, by this machine's" \
		next.log
	goes_on saved
	grep -q "saved/second.tar.zst: run demo" next.log
	not grep -q "after now" next.log
}

@test "of a folder only files are looked at" {
	mkdir saved
	mkfifo saved/pipe.tar.zst
	mkdir saved/folder.tar.zst
	ln -s nowhere saved/link.tar.zst
	stays_away 65 saved
	[[ "$output" == *"saved/pipe.tar.zst: not a file: passed over"* ]]
	[[ "$output" == *"saved/folder.tar.zst: not a file: passed over"* ]]
	[[ "$output" == *"saved/link.tar.zst: No such file"*": passed over"* ]]
	pack first one
	ln -s ../one saved/link.tar.zst -f
	goes_on saved
}

@test "a checkpoint stands alone, and check needs one" {
	pack first one.tar.zst
	run dl-join one.tar.zst m/model.safetensors
	[ "$status" -eq 64 ]
	run dl-join -l layout.tsv one.tar.zst
	[ "$status" -eq 64 ]
	run dl-sync check
	[ "$status" -eq 64 ]
	run dl-sync check nothing one.tar.zst
	[ "$status" -eq 66 ]
	dl-sync check - <one.tar.zst
	dl-join -o from.safetensors <one.tar.zst
	dl-frag check -e m/model.safetensors from.safetensors
	dl-join - <one.tar.zst | dl-frag check -e m/model.safetensors -
	run dl-join -o never < <(cat one.tar.zst)
	[ "$status" -eq 65 ]
	[ ! -e never ]
	[[ "$output" == *"standard input: "*"begins with the text \"manifest\""* ]]
	echo "words that are no record" >words
	run dl-join -o never words
	[ "$status" -eq 65 ]
	[[ "$output" == *"words: begins with the text \"words th\""* ]]
	dl-sync check . >lines
	[ "$(wc -l <lines)" -eq 1 ]
	grep -q "^./one.tar.zst: run demo" lines
	mkdir empty
	run dl-sync check empty
	[ "$status" -eq 66 ]
	[[ "$output" == *"empty: no checkpoint (*.tar.zst) in it" ]]
}
