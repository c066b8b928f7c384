#!/usr/bin/env bats
# Full disks and folders that may not be written to: programs say so and exit
# with 73 or 74, what was there stays, nothing half-written is left, and when
# there is room again they do their work.

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	tools=$abs_top_builddir/tests
	mkdir disk
	disk=$PWD/disk
}

teardown() {
	! mountpoint -q "$disk" || umount "$disk"
}

# model SEED: a small model, in SEED.safetensors.
model() {
	"$tools/tensor/make_model" "$1" "$1.safetensors" llama
}

# crash DO AT COMMAND...: with the crash shim (tests/crash/plan.h).
crash() {
	local what=$1 at=$2

	shift 2
	env LD_PRELOAD="$tools/crash/shim.so" DL_CRASH_ROOT="$disk" \
		ASAN_OPTIONS=verify_asan_link_order=0 \
		DL_CRASH_DO="$what" DL_CRASH_AT="$at" "$@"
}

# tree: all that is on the disk; a file that was written again is another.
tree() {
	find "$disk" -type f -printf '%p %i %s %T@\n' -o -printf '%p\n' | sort
}

# refused REASON: by what the last command said and how it left.
refused() {
	echo "$output"
	[ "$status" -eq 73 ] || [ "$status" -eq 74 ]
	[[ $output == *": $1"* ]]
}

# stages COMMAND...: the disk is full from the first call on, from the second,
# and so on until that is past the last (a sample unless DL_CRASH_ALL is set).
stages() {
	local before n

	before=$(tree)
	for ((n = 1; n < 500; n += DL_CRASH_ALL ? 1 : n)); do
		run crash full "$n" "$@"
		[ "$status" -ne 0 ] || break
		echo "full from call $n on"
		refused "No space left on device"
		[ "$(tree)" = "$before" ]
	done
	# Where it is free of trouble it does its work.
	[ "$n" -gt 1 ]
	[ "$(tree)" != "$before" ]
	[ -z "$(find "$disk" -name '*.tmp.*')" ]
}

# mounted KBYTES: the disk is a small one of its own.
mounted() {
	[ "$(id -u)" -eq 0 ] || skip "only root may mount"
	mount -t tmpfs -o size="$1k" tmpfs "$disk" 2>/dev/null ||
		skip "no file system can be mounted here"
}

@test "dl-frag split and diff on a full disk" {
	model 1
	model 2
	dl-frag plan -n 3 1.safetensors >layout.tsv
	stages dl-frag split -l layout.tsv -o disk/cut 1.safetensors
	cat disk/cut/* | dl-join -l layout.tsv | dl-frag check -e 1.safetensors -
	# Over an older set.
	before=$(tree)
	crash full 1 dl-frag split -l layout.tsv -o disk/cut 2.safetensors || true
	[ "$(tree)" = "$before" ]
	stages dl-frag split -z -l layout.tsv -o disk/packed 1.safetensors
	cat disk/packed/* | dl-join -l layout.tsv |
		dl-frag check -e 1.safetensors -
	stages dl-frag diff -o disk/delta 1.safetensors 2.safetensors
	stages dl-frag diff -z -o disk/delta 1.safetensors 2.safetensors
}

@test "dl-join on a full disk" {
	model 1
	model 2
	stages dl-join -o disk/joined 1.safetensors
	stages dl-join -z -o disk/joined 1.safetensors
	stages dl-join --shard-size 10k -o disk/shards 1.safetensors
	dl-frag check -e 1.safetensors disk/shards
}

@test "dl-quant on a full disk" {
	model 1
	model 2
	model 3
	dl-frag diff 1.safetensors 2.safetensors >2.delta
	dl-frag diff 1.safetensors 3.safetensors >3.delta
	stages dl-quant -c int4 -o disk/narrow 2.delta
	stages dl-quant -c int4 -z -o disk/narrow 3.delta
	stages dl-quant -d -o disk/wide disk/narrow
	rm disk/*
	# What is lost goes with what is written.
	stages dl-quant -c int4 -e disk/lost -o disk/narrow 2.delta
	stages dl-quant -c int4 -e disk/lost -o disk/narrow 3.delta
	for delta in 2.delta 3.delta; do
		dl-quant -c int4 -e lost -o narrow $delta
	done
	cmp narrow disk/narrow
	cmp lost disk/lost
}

@test "dl-sync merge on a full disk" {
	model 1
	model 2
	model 3
	dl-frag diff 1.safetensors 2.safetensors >2.delta
	dl-frag diff 1.safetensors 3.safetensors >3.delta
	stages dl-sync merge -n -o disk/new 1.safetensors 2.delta 3.delta
	stages dl-sync merge -n -o disk/new 1.safetensors 2.delta
	rm disk/new
	# Values, update and momentum go together.
	stages dl-sync merge -s disk/state -o disk/new -u disk/update \
		1.safetensors 2.delta
	stages dl-sync merge -s disk/state -o disk/new -u disk/update \
		1.safetensors 3.delta
}

@test "dl-train on a full disk" {
	seq 2000 >text
	stages dl-train init -q -L 1 -H 2 -d 16 -c 16 disk/m
	dl-train init -q -L 1 -H 2 -d 16 -c 16 m
	stages dl-train run -q -b 2 --steps 1 --save disk/saved m text
	stages dl-train run -q -b 2 --steps 1 -o disk/trained m text
	dl-frag check disk/trained/model.safetensors
}

@test "standard output on a full disk" {
	model 1
	model 2
	dl-frag diff 1.safetensors 2.safetensors >2.delta
	dl-quant -c f16 -e lost 2.delta >narrow
	cp lost before
	mounted 4
	for command in "dl-join 1.safetensors" \
		"dl-quant -c f32 2.delta" \
		"dl-quant -d narrow" \
		"dl-frag diff 1.safetensors 2.safetensors" \
		"dl-sync merge -n 1.safetensors 2.delta"; do
		run bash -c "$command >disk/out"
		refused "No space left on device"
	done
	run bash -c "dl-quant -c f16 -e lost 2.delta >>disk/out"
	refused "No space left on device"
	cmp lost before
}

@test "a disk that is really full" {
	model 1
	dl-frag plan -n 3 1.safetensors >layout.tsv
	mounted 8
	echo old >disk/joined
	before=$(tree)
	for command in "dl-join -o disk/joined 1.safetensors" \
		"dl-frag split -l layout.tsv -o disk/cut 1.safetensors" \
		"dl-sync serve --store disk/store --listen unix:s 1.safetensors"; do
		run $command
		refused "No space left on device"
		[[ $command == *serve* ]] || [ "$(tree)" = "$before" ]
	done
	mount -o remount,size=8m "$disk"
	dl-join -o disk/joined 1.safetensors
	dl-frag split -l layout.tsv -o disk/cut 1.safetensors
}

@test "a folder that may not be written to" {
	model 1
	model 2
	seq 2000 >text
	dl-frag plan -n 3 1.safetensors >layout.tsv
	dl-train init -q -L 1 -H 2 -d 16 -c 16 m
	dl-frag diff 1.safetensors 2.safetensors >2.delta
	if [ "$(id -u)" -eq 0 ]; then
		mounted 1024
		echo old >disk/old
		mount -o remount,ro "$disk"
		reason="Read-only file system"
	else
		echo old >disk/old
		chmod a-w disk
		reason="Permission denied"
	fi
	before=$(tree)
	for command in "dl-join -o disk/old 1.safetensors" \
		"dl-frag split -l layout.tsv -o disk 1.safetensors" \
		"dl-frag split -l layout.tsv -o disk/cut 1.safetensors" \
		"dl-frag diff -o disk/old 1.safetensors 2.safetensors" \
		"dl-join --shard-size 10k -o disk/shards 1.safetensors" \
		"dl-quant -c int4 -o disk/old 2.delta" \
		"dl-quant -c int4 -e disk/lost -o new 2.delta" \
		"dl-sync run disk/spool 1.safetensors" \
		"dl-sync run --store disk/store spool 1.safetensors" \
		"dl-sync merge -n -o disk/old 1.safetensors 2.delta" \
		"dl-sync merge -s disk/state -o new 1.safetensors 2.delta" \
		"dl-sync serve --store disk/store --listen unix:s 1.safetensors" \
		"dl-sync serve --store s -o disk/old --listen unix:s 1.safetensors" \
		"dl-train init -q -L 1 disk/m" \
		"dl-train run -q --steps 1 -o disk/trained m text" \
		"dl-train run -q --steps 1 --save disk/old m text"; do
		run $command
		echo "$command: $status"
		refused "$reason"
		[ "$(tree)" = "$before" ]
	done
	[ ! -e new ]
}
