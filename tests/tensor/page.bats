@test "the record that dl-fragment(5) prints is what it says" {
	record=$BATS_TEST_TMPDIR/page.safetensors
	grep '^000[0-9a-f]*: ' "$abs_top_srcdir/man/dl-fragment.5" |
		perl -ne 's/^\w+: //; s/  .*//; print pack "H*", s/\s//gr' \
			>"$record"
	run dl-frag check "$record"
	[ "$status" = 0 ]
	run dl-frag show "$record"
	[[ $output == *dl.kind=params*$'b\tF32\t2\t2\t8\t0\na\tF16\t-\t1\t2\t0' ]]
}
