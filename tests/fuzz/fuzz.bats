#!/usr/bin/env bats
# How fuzz.sh tells of a finding.

# target NAME STATUS: says what libFuzzer does, and that it wrote a finding when
# there is one.
target() {
	printf '#!/bin/sh
echo "#2 INITED cov: 12 ft: 3 corp"
[ %d = 0 ] || echo "Test unit written to $PWD/%s-crash-1"
echo "stat::number_of_executed_units: 99"
exit %d\n' "$2" "$1" "$2" >"tests/fuzz/fuzz_$1"
	chmod +x "tests/fuzz/fuzz_$1"
}

setup() {
	cd "$BATS_TEST_TMPDIR"
	mkdir -p tests/fuzz
	target good 0
	target bad 77
}

@test 'a finding is named and is the status, and the next target runs' {
	run "$abs_top_srcdir/tests/fuzz/fuzz.sh" 1 bad good
	[ "$status" -eq 1 ]
	[ "${lines[1]}" = "bad	99	12	$PWD/bad-crash-1" ]
	[ "${lines[2]}" = 'good	99	12	-' ]
	run "$abs_top_srcdir/tests/fuzz/fuzz.sh" 1 good
	[ "$status" -eq 0 ]
}
