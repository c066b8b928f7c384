#!/usr/bin/env bats
# zstd: recognised by every program that reads, written where -z asks for it.

setup() {
	command -v zstd >/dev/null || skip "no zstd program"
	cd "$BATS_TEST_TMPDIR"
	"$abs_top_builddir/tests/tensor/make_model" 1 m llama
	"$abs_top_builddir/tests/tensor/make_model" 2 new llama
	dl-frag plan -n 3 m >layout.tsv
}

# A skippable frame: its magic, the length of what is in it, and that.
skippable() {
	printf 'P*M\030\005\0\0\0hello'
}

# refused TEXT COMMAND...: it exits 65 and says so.
refused() {
	text=$1
	shift
	run "$@"
	echo "$status: $output"
	[ "$status" -eq 65 ]
	[[ "$output" == *"$text"* ]]
}

@test "dl-frag and dl-join read what is compressed" {
	for file in m new layout.tsv; do
		zstd -q $file
	done
	dl-frag plan -n 3 m.zst | cmp - layout.tsv
	dl-frag plan -n 3 <m.zst | cmp - layout.tsv
	dl-frag show -j m | cut -d, -f2- >want
	dl-frag show -j m.zst | cut -d, -f2- | cmp - want
	dl-frag show -j <m.zst | cut -d, -f2- | cmp - want
	dl-frag check -l layout.tsv.zst -e m m.zst
	dl-frag diff m new >delta
	dl-frag diff m.zst <new.zst | cmp - delta
	zstd -q delta
	dl-frag split -l layout.tsv.zst m.zst | zstd -q | dl-join | cmp - m
	dl-join -b m.zst -l layout.tsv.zst delta.zst |
		dl-frag check -e new.zst -t 1e-8
}

@test "a sharded set may be compressed, index and shards" {
	"$abs_top_builddir/tests/tensor/make_model" 3 shards 2
	dl-join shards >want
	zstd -q --rm shards/*.safetensors
	for shard in shards/*.zst; do
		mv "$shard" "${shard%.zst}"
	done
	zstd -q --rm shards/*.json
	mv shards/*.json.zst shards/model.safetensors.index.json
	dl-join shards | cmp - want
}

@test "frames follow one another, and some are skipped" {
	dl-frag split -l layout.tsv -o frags m
	{
		skippable
		for f in frags/*.frag; do
			zstd -qc "$f"
			skippable
		done
	} >stream
	dl-join stream | cmp - m
	dl-join <stream | cmp - m
	[ "$(dl-frag show <stream | grep -c '^# record')" -eq 4 ]
}

@test "a stream is compressed as a whole or not at all" {
	zstd -qk m
	refused "record 1: compressed by zstd" dl-frag show <(cat m m.zst)
	refused "record 1: compressed by zstd" dl-frag check <(cat m m.zst)
	cat m m.zst >mixed
	refused "record 1: compressed by zstd" dl-frag show mixed
	refused "record 1: compressed by zstd" dl-frag check mixed
	cat m.zst m >mixed
	refused "mixed: zstd: " dl-frag check mixed
	refused "mixed: zstd: " dl-frag show mixed
}

@test "what is damaged or cut is refused" {
	dl-frag split -z -l layout.tsv m >stream
	dl-frag check stream
	size=$(wc -c <stream)
	for at in 9 $((size / 2)) $((size - 2)); do
		cp stream bad
		printf '\252\125' | dd of=bad bs=1 seek=$at conv=notrunc 2>/dev/null
		refused "bad: zstd: " dl-join -o joined bad
		refused "standard input: zstd: " dl-frag show <bad
		head -c $at stream >cut
		refused "cut: zstd: ends inside a frame" dl-join -o joined cut
	done
	[ ! -e joined ]
}

@test "-z compresses what is written" {
	for level in "" 1; do
		dl-frag split -z$level -l layout.tsv m >split
		zstd -dc split | dl-join | cmp - m
		dl-frag diff -z$level -o delta m new
		zstd -dcq <delta | dl-join -b m | cmp - <(dl-join -b m delta)
		dl-join -z$level -o joined split
		zstd -dcq <joined | cmp - m
	done
	dl-join --zstd=3 split | cmp - <(dl-join -z split)
	dl-join -z19 m | zstd -dcq | cmp - m
	# A checksum: XXH64, whose flag is bit 2 of the frame's descriptor.
	[ $((0x$(dl-join -z m | od -An -tx1 -j4 -N1 | tr -d ' ') & 4)) -eq 4 ]
	for level in 0 20 x -1; do
		run dl-join -z$level m
		[ "$status" -eq 64 ]
	done
}

@test "compressed fragments in a folder have names that zstd knows" {
	dl-frag split -z -o frags -l layout.tsv m
	[ "$(echo frags/*)" = "frags/000.frag.zst frags/001.frag.zst \
frags/002.frag.zst frags/local.frag.zst" ]
	dl-join frags/* | cmp - m
	zstd -dq --rm frags/*
	dl-join frags/*.frag | cmp - m
}

@test "what is compressed is whole or not there, too" {
	dl-frag split -l layout.tsv -o frags m
	rm frags/001.frag
	run dl-join -z -o joined frags/*
	[ "$status" -eq 65 ]
	[ "$(ls)" = "frags
layout.tsv
m
new" ]
	dl-frag split -z -l layout.tsv m >/dev/full 2>err || status=$?
	[ "$status" -eq 74 ]
	grep -q "standard output: No space" err
}

@test "dl-train reads models, configurations and text that are compressed" {
	dl-train init -q -L 1 -H 2 -d 16 -c 16 t
	seq 3000 >text
	dl-train eval t text >want
	zstd -q --rm text t/config.json
	mv t/config.json.zst t/config.json
	zstd -q --rm t/model.safetensors
	mv t/model.safetensors.zst t/model.safetensors
	dl-train eval t text.zst | cmp - want
	head -c 1000 text.zst >cut
	refused "cut: zstd: ends inside a frame" dl-train eval t cut
}

@test "dl-quant and dl-sync merge read and write what is compressed" {
	dl-frag diff -l layout.tsv m new >delta
	zstd -qk delta m
	dl-quant -c int4 delta >coded
	dl-quant -c int4 -z delta.zst | zstd -dcq | cmp - coded
	dl-quant -d coded >decoded
	zstd -qc coded | dl-quant -d --zstd=1 | zstd -dcq | cmp - decoded
	dl-sync merge -l layout.tsv m delta >merged
	dl-sync merge -l layout.tsv -z m.zst delta.zst | zstd -dcq |
		cmp - merged
}

@test "dl-sync serve takes a model that is compressed" {
	zstd -qk m layout.tsv
	dl-sync serve -q --layout layout.tsv.zst --store store --listen "unix:$PWD/s" \
		m.zst 3>&- &
	for i in $(seq 400); do
		! dl-join -z -o joined "unix:$PWD/s" 2>/dev/null || break
		sleep 0.05
	done
	kill $!
	wait $!
	dl-frag check -e m joined
	zstd -tq joined
}
