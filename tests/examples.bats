#!/usr/bin/env bats
# The scripts in examples/ do what they say, each in a folder of its own.

example() {
	"$abs_top_srcdir/examples/$1" "$BATS_TEST_TMPDIR/run"
}

@test "ssh.sh" {
	PATH=$PATH:/usr/sbin command -v sshd || skip "there is no sshd"
	example ssh.sh
}

@test "round-by-hand.sh" {
	example round-by-hand.sh
	cd "$BATS_TEST_TMPDIR/run"
	dl-frag check -l layout.tsv merged.safetensors
	[ "$(dl-frag show momentum | grep -c dl.kind=momentum)" -eq 4 ]
}

@test "cron-spool.sh" {
	example cron-spool.sh
}
