#!/usr/bin/env bats
#
# dl-sim bandwidth --measured: the model beside a run that was made.

load ../run/run

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# cell COLUMN of the only line of the table on standard input
cell() {
	awk -F '\t' -v what="$1" '
	NR == 1 { sub(/^# /, ""); for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ print $at[what] }'
}

# holds EXPRESSION: as awk has it
holds() {
	echo "$1"
	awk "BEGIN { exit !($1) }"
}

@test "learners that wait for a slow link" {
	syncer --steps 100 --wait --quorum 2 --tau 2
	learner ash --rate 400K
	learner birch --rate 400K
	ends ash
	ends birch
	ends syncer
	table=$(dl-sim bandwidth --measured tape --link 3200kbit --wait -t 10ms)
	echo "$table"
	[ "$(echo "$table" | cell learners)" = 2 ]
	[ "$(echo "$table" | cell fragments)" = 3 ]
	[ "$(echo "$table" | cell h)" = 6 ]
	[ "$(echo "$table" | cell tau)" = 2 ]
	values=$(awk '!/^#/ { n += $4 } END { print n }' layout.tsv)
	[ "$(echo "$table" | cell values)" = "$values" ]
	# f32, and what records and messages add.
	holds "$(echo "$table" | cell push_bits) > 32"
	holds "$(echo "$table" | cell push_bits) < 35"
	# Half of the time, and no run is much better than its link allows.
	predicted=$(echo "$table" | cell predicted)
	measured=$(echo "$table" | cell measured)
	holds "$predicted > 46 && $predicted < 52"
	holds "$measured < 1.5 * $predicted"
	holds "($(echo "$table" | cell correction) - $predicted / $measured)^2 < 1e-5"
	# From a pipe; and learners that do not wait would always train.
	[ "$(dl-sim bandwidth --measured - --link 3200kbit -t 10ms <tape |
		cell predicted)" = 100 ]
}

@test "what is no tape of a run, or says nothing about the link" {
	run dl-sim bandwidth --measured none --link 1Mbit
	[ "$status" -eq 66 ]
	run dl-sim bandwidth --measured layout.tsv --link 1Mbit
	[ "$status" -eq 65 ]
	run dl-sim bandwidth --measured layout.tsv
	[ "$status" -eq 64 ]
	run dl-sim bandwidth --wait
	[ "$status" -eq 64 ]
}
