#!/usr/bin/env bats
#
# The two cores decide and do nothing else: whatever they call from outside is
# on a short list of memory, strings, sorting and arithmetic. No clock, no
# file, no socket, no lock, no output.

allowed='dl_alloc dl_alloc_array dl_resize free
memchr memcpy memmove memset memcmp strcmp strlen qsort
ceil exp fabs floor fmax fmin llround log sqrt'

# The symbols of that nm type in the two rooms.
symbols() {
	nm "$abs_top_builddir/libsync.a" "$abs_top_builddir/liblearn.a" |
		awk -v type="$1" 'NF > 1 && $(NF - 1) ~ type { print $NF }' |
		sort -u
}

@test "the cores call nothing but memory, strings, sorting and arithmetic" {
	symbols '^[A-TV-Z]$' >"$BATS_TEST_TMPDIR/own"
	printf '%s\n' $allowed | sort >"$BATS_TEST_TMPDIR/allowed"
	# The compiler's own checks are not calls of ours.
	symbols '^U$' | grep -v '^_' >"$BATS_TEST_TMPDIR/called"
	grep -qx dl_sync_event "$BATS_TEST_TMPDIR/own"
	grep -qx dl_learn_event "$BATS_TEST_TMPDIR/own"
	grep -qx dl_alloc "$BATS_TEST_TMPDIR/called"
	others=$(sort -u "$BATS_TEST_TMPDIR/own" "$BATS_TEST_TMPDIR/allowed" |
		comm -13 - "$BATS_TEST_TMPDIR/called")
	echo "also called: $others"
	[ -z "$others" ]
}
