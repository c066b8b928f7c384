# The records that dl-fragment(5) prints are what it says.

# The N-th dump of the page, as bytes.
record() {
	perl -ne '$n++ if /^0{8}: /; next unless $n == '"$1"' and s/^0[0-9a-f]{7}: //;
		s/  .*//; print pack "H*", s/\s//gr' \
		"$abs_top_srcdir/man/dl-fragment.5"
}

@test "the first record that dl-fragment(5) prints" {
	record 1 >"$BATS_TEST_TMPDIR/page"
	run dl-frag check "$BATS_TEST_TMPDIR/page"
	[ "$status" = 0 ]
	run dl-frag show "$BATS_TEST_TMPDIR/page"
	[[ $output == *dl.kind=params*$'b\tF32\t2\t2\t8\t0\na\tF16\t-\t1\t2\t0' ]]
}

@test "the encoded record that dl-fragment(5) prints" {
	cd "$BATS_TEST_TMPDIR"
	record 2 >page
	dl-quant -d page >values
	run dl-frag show values
	[[ $output == *dl.kind=delta*$'w\tF32\t3\t3\t12\t0' ]]
	[ "$(tail -c 12 values | od -A n -t f4 | tr -s ' ')" = \
		" 0.875 -0.25 0.125" ]
	dl-quant -c int4 values | cmp - page
}
