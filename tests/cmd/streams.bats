#!/usr/bin/env bats
# Standard streams that are full or closed.

setup() {
	cd "$BATS_TEST_TMPDIR"
	seq 1000 >text
	dl-train init -q -L 1 -H 2 -d 16 -c 16 m
	dl-frag plan -n 2 m >layout.tsv
}

# full COMMAND...: says that it cannot write, into /dev/full and when closed.
full() {
	for out in /dev/full closed; do
		status=0
		if [ "$out" = closed ]; then
			"$@" >&- 2>err || status=$?
		else
			"$@" >"$out" 2>err || status=$?
		fi
		echo "$* ($out): $status $(cat err)" >&2
		[ "$status" -eq 74 ]
		grep -q "^$1: standard output: " err
	done
}

@test "output that cannot be written is an error" {
	for program in frag join learn sim stat sync train; do
		full dl-$program -h
	done
	full dl-frag show m
	full dl-frag plan -n 2 m
	full dl-frag split -l layout.tsv m
	full dl-frag diff m m
	full dl-join m
	full dl-sim fleet -m 2 --rounds 4
	full dl-train eval m text
	full dl-train sample -n 3 m
}

@test "what is said does not go into files when standard error is closed" {
	dl-sync serve -v --store store --listen "unix:$PWD/s" m 3>&- 2>&- &
	for i in $(seq 400); do
		[ ! -e store/HEAD ] || break
		sleep 0.05
	done
	kill -TERM $!
	wait $!
	[ -e store/lock ]
	[ ! -s store/lock ]
}
