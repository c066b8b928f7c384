#!/usr/bin/env bats
#
# A real fleet and what dl-sim fleet says of it. Takes a minute, and a machine
# that has time for its steps: only when DL_SIM_REAL is 1.

@test "a fleet of paced learners does what dl-sim fleet says, within 3%" {
	[ "${DL_SIM_REAL:-0}" = 1 ] || skip "DL_SIM_REAL is not 1"
	cd "$BATS_TEST_TMPDIR"
	export TMPDIR=$BATS_TEST_TMPDIR PYTHONDONTWRITEBYTECODE=1
	run python3 "$abs_top_srcdir/tests/chaos/chaos.py" fleet \
		--shim "$abs_top_builddir/tests/chaos/shim.so"
	echo "$output"
	[ "$status" -eq 0 ]
}
