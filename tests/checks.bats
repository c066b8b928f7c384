#!/usr/bin/env bats
# The tests themselves: what fails in them fails them.

# lines PATTERN: of tests.
lines() {
	grep -rn "$1" --include='*.bats' "$abs_top_srcdir/tests" || true
}

@test "no check is one that bats passes over" {
	passed=$(
		lines '^\s\+! ' | grep -v '||\|\\$' || true
		lines '^\s\+\[.*\] && \[.*\]$'
	)
	echo "$passed"
	[ -z "$passed" ]
}
