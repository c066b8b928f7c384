#!/usr/bin/env bats
# A model larger than memory: a few blocks are enough to cut it, join it,
# subtract, encode and compress it, though half of it is one tensor.
#
# DL_BIG_GB=12 make check TESTS=tests/cmd/big.bats
#
# is the same with a model of 12 GB and 1 GB of address space. It needs as much
# room in TMPDIR.

setup() {
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$PWD
	if [ -n "$DL_BIG_GB" ]; then
		bytes=$((DL_BIG_GB * 1000000000))
		limit=1000000
	else
		bytes=100000000
		limit=60000
	fi
	# What counts is memory for data, not stacks of as many threads as there
	# are processors.
	export MALLOC_ARENA_MAX=1
	ulimit -s 512
	# Programs built with sanitizers cannot start so small.
	(ulimit -v $limit && dl-frag -V) >/dev/null 2>&1 ||
		skip "no limit on memory"
	"$abs_top_builddir/tests/tensor/make_model" 1 m sparse $bytes
	"$abs_top_builddir/tests/tensor/make_model" 2 new sparse $bytes
	ulimit -v $limit
	dl-frag plan -n 6 m >layout.tsv
}

@test "a model larger than memory is cut and joined" {
	dl-frag split -l layout.tsv m | dl-join | cmp - m
	dl-frag split -z1 -l layout.tsv - <m >frags
	dl-frag check -l layout.tsv frags
	dl-join frags | cmp - m
	dl-frag plan -n 40 m | dl-frag split -z1 -l - -o many m
	dl-join many/* | cmp - m
}

@test "a model larger than memory is subtracted and added" {
	dl-frag diff m new | dl-join -b m | dl-frag check -e new -t 0.02
	run dl-frag check -e m new
	[ "$status" -eq 1 ]
}

@test "a model larger than memory is encoded and decoded" {
	dl-frag diff -l layout.tsv m new | dl-quant -c int8 -z1 >coded
	dl-quant -d coded | dl-join -b m | dl-frag check -e new -t 0.1
}

@test "a model larger than memory is sharded" {
	dl-join --shard-size $((bytes / 6)) -o set m
	[ "$(ls set | wc -l)" -ge 5 ]
	dl-join set | cmp - m
}
