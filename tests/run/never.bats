#!/usr/bin/env bats
#
# Never stops: paced learners are killed and started again at random, and the
# syncer once, while the clock must go on at the pace of the fastest learner
# that lives. DL_NEVER_SECONDS says for how long (20 unless set; 180 is the
# whole form).

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

names=(ann ben cid dee eve fay gus hal)
seconds=${DL_NEVER_SECONDS:-20}

start() { # name
	background "$1" dl-learn -q -n "$1" --scratch "$scratch" "$link" -- \
		dl-train run -q -b 2 --step-time 50ms m text
}

# From the tape, a line a second: the clock, and the most steps that one
# instance has made since the second before.
paces() {
	awk '
	function number(key) {
		if (!match($0, "\"" key "\":[0-9]+"))
			return 0
		return substr($0, RSTART + length(key) + 3,
			RLENGTH - length(key) - 3) + 0
	}
	/"format"/ { delete own; delete then; starts++ }
	/"event":"step"/ {
		second = int(number("wall") / 1e9)
		if (second != now) {
			if (now && steady)
				print clock - before, most
			before = clock
			delete then
			for (i in own)
				then[i] = own[i]
			most = 0
			steady = second == now + 1 && starts == seen
			seen = starts
			now = second
		}
		id = number("instance")
		own[id] = number("steps")
		if (number("clock") > clock)
			clock = number("clock")
		if (id in then && own[id] - then[id] > most)
			most = own[id] - then[id]
	}' tape
}

@test "the clock goes on as fast as the fastest that lives" {
	syncer
	for name in "${names[@]}"; do
		start "$name"
	done
	wait_for pushed ann
	RANDOM=11
	end=$((SECONDS + seconds)) half=$((SECONDS + seconds / 2)) again=
	while [ "$SECONDS" -lt "$end" ]; do
		name=${names[RANDOM % 8]}
		kill_hard "$name"
		sleep "$((RANDOM % 3)).$((RANDOM % 10))"
		start "$name"
		if [ -z "$again" ] && [ "$SECONDS" -ge "$half" ]; then
			kill "${pid[syncer]}"
			ends syncer
			syncer
			again=1
		fi
	done
	dl-sync end "$link"
	ends syncer
	for name in "${names[@]}"; do
		ends "$name"
	done
	is_better
	dl-stat tape
	paces >paces
	awk '{ clock += $1; most += $2; n++ } END {
		printf "# %d seconds: the clock made %d steps, %s %d (%.3f)\n",
			n, clock, "the fastest learner", most, clock / most
		exit !(n >= 5 && clock >= 0.95 * most) }' paces >&3
}
