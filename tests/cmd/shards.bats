#!/usr/bin/env bats
# Sharded sets: written by dl-join as other tools write them, and read again.

setup() {
	cd "$BATS_TEST_TMPDIR"
	"$abs_top_builddir/tests/tensor/make_model" 1 m llama
	index=set/model.safetensors.index.json
}

# refused CODE TEXT COMMAND...: it exits so and says so.
refused() {
	code=$1
	text=$2
	shift 2
	run "$@"
	echo "$status: $output"
	[ "$status" -eq "$code" ]
	[[ "$output" == *"$text"* ]]
}

@test "a set has the names and the index that other tools write" {
	dl-join --shard-size 2K -o set m
	[ "$(cd set && echo *)" = "model-00001-of-00004.safetensors \
model-00002-of-00004.safetensors model-00003-of-00004.safetensors \
model-00004-of-00004.safetensors model.safetensors.index.json" ]
	cat >want <<END
{
  "metadata": {
    "total_size": 6240
  },
  "weight_map": {
    "lm_head.weight": "model-00001-of-00004.safetensors",
    "model.embed_tokens.weight": "model-00002-of-00004.safetensors",
    "model.layers.0.mlp.down_proj.weight": "model-00003-of-00004.safetensors",
    "model.layers.0.mlp.up_proj.weight": "model-00003-of-00004.safetensors",
    "model.layers.0.norm.weight": "model-00003-of-00004.safetensors",
    "model.layers.1.mlp.down_proj.weight": "model-00003-of-00004.safetensors",
    "model.layers.1.mlp.up_proj.weight": "model-00004-of-00004.safetensors",
    "model.layers.1.norm.weight": "model-00004-of-00004.safetensors",
    "model.norm.weight": "model-00004-of-00004.safetensors"
  }
}
END
	diff want $index
	# Every shard is a whole file with the model's own metadata.
	for shard in set/*.safetensors; do
		dl-frag show -j $shard | grep -q '"metadata":{"format":"pt"}'
	done
}

@test "every odd model comes back from its shards bit for bit" {
	for seed in 1 2 3; do
		"$abs_top_builddir/tests/tensor/make_model" $seed odd
		dl-join odd >whole
		for size in 1 300 4Ki; do
			dl-join --shard-size $size -o set odd
			dl-join --shard-size $size -o again <odd
			diff -r set again
			dl-join set | cmp - whole
			rm -r set again
		done
	done
}

@test "fragments, deltas and layouts go into a set as into a file" {
	"$abs_top_builddir/tests/tensor/make_model" 2 new llama
	dl-frag plan -n 3 m >layout.tsv
	dl-frag diff -l layout.tsv m new |
		dl-join -b m -l layout.tsv --shard-size 1K -o set
	dl-frag diff -l layout.tsv m new | dl-join -b m -o joined
	dl-join set | cmp - joined
	dl-frag split -l layout.tsv set | dl-join --shard-size 3K -o back
	dl-frag check -e joined back
}

@test "what fits into one shard is one file" {
	mkdir set
	touch set/config.json
	dl-join --shard-size 1G -o set m
	[ "$(cd set && echo *)" = "config.json model.safetensors" ]
	cmp m set/model.safetensors
	# Two models must not mix.
	refused 73 "set: holds a model already" dl-join --shard-size 1K -o set m
	cmp m set/model.safetensors
	dl-join --shard-size 1K -o other m
	refused 73 "other/: holds a model already" \
		dl-join --shard-size 2K -o other/ <(echo)
}

@test "a set appears whole or not at all" {
	mkdir -p set/model-00003-of-00004.safetensors
	refused 73 "set/model-00003-of-00004.safetensors: is a folder" \
		dl-join --shard-size 2K -o set m
	[ "$(cd set && echo *)" = "model-00003-of-00004.safetensors" ]
	rmdir set/* set
	# A file that grows too large, after the first that do not.
	trap '' XFSZ
	(
		ulimit -f 2
		dl-join --shard-size 1K -o set m 2>err
	) && return 1
	grep -q "set/model-0000.-of-0000..safetensors: File too large" err
	[ ! -e set ]
	refused 73 "nowhere/set: No such file" \
		dl-join --shard-size 2K -o nowhere/set m
	refused 73 "m: File exists" dl-join --shard-size 2K -o m m
}

@test "shards need a folder and a size, and are not compressed" {
	refused 64 "needs a folder" dl-join --shard-size 5G m
	refused 64 "holds nothing" dl-join --shard-size 0 -o set m
	refused 64 "not a size" dl-join --shard-size 5X -o set m
	refused 64 "other tools" dl-join --shard-size 5G -z -o set m
	refused 73 "$PWD: is a folder" dl-join -o "$PWD" m
	[ ! -e set ]
}

@test "what is no file is written to where it is" {
	dl-join -o >(cat >joined) m
	for i in $(seq 100); do
		! cmp -s m joined || break
		sleep 0.05
	done
	cmp m joined
	mkfifo pipe
	dl-join -o pipe m &
	cmp pipe m
	wait $!
	[ -p pipe ]
}
