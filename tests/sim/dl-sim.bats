#!/usr/bin/env bats
#
# dl-sim: the table, and what the rules do to learners of mixed speeds.

# field COLUMN of the line of learner $1 in the table on standard input
field() {
	awk -F '\t' -v who="$1" -v what="$2" '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$1 == who { print $at[what] }'
}

# Is the number $1 at least $2?
at_least() {
	echo "$1 is to be at least $2"
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a + 0 >= b + 0) }'
}

@test "one header line, one line a learner, one for all" {
	run dl-sim fleet -m 3 --steps 100
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 5 ]
	[ "$(echo "$output" | cut -f 1 | tr '\n' ' ')" = "# learner 0 1 2 total " ]
	[ "$(echo "$output" | awk -F '\t' '{ print NF }' | sort -u)" = 17 ]
}

@test "-h of a job says nothing of the others" {
	run dl-sim fleet -h
	[ "$status" -eq 0 ]
	[[ $output == "usage: dl-sim fleet ["*"] [--json]"*"--quorum K"* ]]
	[[ $output != *goodput* ]]
	[[ $output != *--chips* ]]
}

@test "the same table as JSON" {
	json=$(dl-sim fleet -m 3 --steps 100 --json | python3 -c '
import json, sys
for row in json.load(sys.stdin):
	print(row["learner"], row["participation%"])')
	tsv=$(dl-sim fleet -m 3 --steps 100 | sed 1d | cut -f 1,4)
	[ "$json" = "$(echo "$tsv" | tr '\t' ' ')" ]
}

@test "equal seeds, equal bytes; other seeds, other bytes" {
	bad='fleet -m 4 --steps 300 --deaths 60s:5s --cuts 50s --crashes 70s'
	dl-sim $bad --seed 5 >"$BATS_TEST_TMPDIR/a"
	dl-sim $bad --seed 5 >"$BATS_TEST_TMPDIR/b"
	dl-sim $bad --seed 6 >"$BATS_TEST_TMPDIR/c"
	cmp "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/b"
	run cmp -s "$BATS_TEST_TMPDIR/a" "$BATS_TEST_TMPDIR/c"
	[ "$status" -eq 1 ]
}

@test "grace lets slower learners take part" {
	none=$(dl-sim fleet -t 1s,1.2s --grace none | field total participation%)
	some=$(dl-sim fleet -t 1s,1.2s | field total participation%)
	at_least "$some" 95
	at_least 30 "$none"
}

@test "a learner four times slower contributes by jumps" {
	table=$(dl-sim fleet -m 4 -t 1s,1s,1s,4s)
	at_least "$(echo "$table" | field 3 clock)" 990
	at_least 260 "$(echo "$table" | field 3 steps)"
	at_least "$(echo "$table" | field 3 goodput%)" 80
}

# between LOW X HIGH
between() {
	at_least "$2" "$1" && at_least "$3" "$2"
}

@test "mixed hardware: waiting costs what the slowest costs, jumps nothing" {
	mixed='dl-sim fleet -t 1s,1.19s --spread 0.1 --steps 300 -r 16'
	all=$($mixed -k 8 --wait)
	between 81 "$(echo "$all" | field total utilisation%)" 87
	between 0.6 "$(echo "$all" | field total utilisation_error)" 1.6
	at_least "$($mixed -k 8 | field total utilisation%)" 98
	at_least 25 "$($mixed --grace none | field total participation%)"
	some=$($mixed)
	at_least "$(echo "$some" | field total participation%)" 98.5
	at_least "$(echo "$some" | field total utilisation%)" 98
}

# Seconds that a fleet with $1 learners more from $2 on takes, relative to $3.
relative() {
	extra=$1:$2:225s:1s base=$3
	shift 3
	dl-sim fleet -t 4s --tokens 16M --extra "$extra" "$@" |
		field total seconds |
		awk -v base="$base" '{ printf "%.4f", $1 / base }'
}

@test "scavenging: the paper's row, and why data-parallel gains nothing" {
	base=$(relative 0 4000s 1)
	between 0.89 "$(relative 2 4000s "$base")" 0.91
	between 0.82 "$(relative 4 4000s "$base")" 0.84
	between 0.74 "$(relative 8 4000s "$base")" 0.76
	between 0.61 "$(relative 24 4000s "$base")" 0.63
	same='-n 1 -H 1 --tau 0 --wait --grace 1h --regroup 1m:35s'
	base=$(relative 0 4385s 1 $same)
	few=$(relative 2 4385s "$base" $same -r 6)
	between 1.05 "$few" 1.12
	between 1.05 "$(relative 4 4385s "$base" $same -r 6)" 1.12
	between 1 "$(relative 8 4385s "$base" $same -r 6)" 1.04
	between 0.8 "$(relative 24 4385s "$base" $same -r 6)" 0.84
	# As the page reckons: 0.5 + 0.5 (1 + g) / (1 + x - y)
	near "$few" 1.0775 3
}

@test "fragments take time on the link, both ways, and share a site's" {
	calm='dl-sim fleet -m 1 -n 1 -H 10 --tau 0 --wait --grace none -t 1s
		--jitter 0 --delay 0s --merge 0s --steps 100'
	# 1M values of 16 bits take 1 s at 16 Mbit/s; a learner waits for that
	link='--model 1M --push bf16 --global int4 --link 16Mbit'
	free=$($calm --transfer 0s | field total seconds)
	alone=$($calm $link | field total seconds)
	echo "$free $alone"
	between 10 "$(awk -v a="$alone" -v f="$free" 'BEGIN { print a - f }')" 12
	# ... and overwrites what it did while the global fragment came
	at_least 10 "$($calm $link | field total overwritten%)"
	at_least "$($calm $link --global f32 | field total overwritten%)" 15
	at_least "$($calm $link --link 8Mbit | field total seconds)" \
		"$(awk -v a="$alone" 'BEGIN { print a + 10 }')"
	at_least "$($calm $link -m 2 -k 2 --sites 1 | field total seconds)" \
		"$(awk -v a="$alone" 'BEGIN { print a + 10 }')"
	at_least "$(awk -v a="$alone" 'BEGIN { print a + 2 }')" \
		"$($calm $link -m 2 -k 2 | field total seconds)"
}

@test "a link too slow for every round stops who waits, and nobody else" {
	slow='dl-sim fleet -m 2 --model 24M --link 8Mbit --steps 600'
	at_least 780 "$($slow | field total seconds)"
	at_least "$($slow --wait | field total seconds)" 1200
}

@test "extra learners come when they are said to, and go" {
	table=$(dl-sim fleet -m 2 --extra 1:500s --jitter 0 --time 1000s)
	between 490 "$(echo "$table" | field 2 steps)" 500
	table=$(dl-sim fleet -m 2 --extra 4:0s:50s:50s --jitter 0 --time 2000s)
	between 700 "$(echo "$table" | field 3 steps)" 1300
	at_least 1 "$(echo "$table" | field total lost%)"
}

@test "who is killed at a moment is away until it is back" {
	table=$(dl-sim fleet -m 2 -t 1s --jitter 0 --time 1000s \
		--kill 1:100s:300s --kill 1:600s:200s)
	at_least "$(echo "$table" | field 0 steps)" 995
	at_least "$(echo "$table" | field 1 steps)" 495
	at_least 500 "$(echo "$table" | field 1 steps)"
	for bad in 2:1s:1s 1:1s 1:1s:x 1:1s:1s:1s; do
		run dl-sim fleet -m 2 --kill $bad
		[ "$status" -eq 64 ]
	done
}

# A fragment has 1M values.
@test "a tape tells how much was sent" {
	cd "$BATS_TEST_TMPDIR"
	dl-sim fleet -m 2 --model 24M --push int4 --global bf16 --steps 200 \
		--tape tape
	all=$(dl-stat -t tape | sed 's/^# name/learner/;s/^\*/total/')
	pushes=$(echo "$all" | field total pushes)
	at_least "$pushes" 300
	[ "$(echo "$all" | field total up)" = $((pushes * 515625)) ]
	[ "$(echo "$all" | field total down)" = \
		$(($(grep -c '"event":"applied"' tape) * 2000000)) ]
	[ "$(echo "$all" | field total down-x)" = 2 ]
}

@test "the clock follows the fastest" {
	at_least "$(dl-sim fleet -t 1s,3s --time 1000s | field total clock)" 950
}

@test "lock-step waits for the slowest" {
	table=$(dl-sim fleet -m 4 -t 1s,2s -k 4 --wait --steps 200)
	at_least 60 "$(echo "$table" | field 0 utilisation%)"
	at_least "$(echo "$table" | field 1 utilisation%)" 90
	[ "$(echo "$table" | field total late)" = 0 ]
}

@test "goodput: the paper's fifteen cells, with tabs, aligned and as JSON" {
	run dl-sim goodput
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 16 ]
	echo "$output" | head -n 1 | grep -q '^# mode	chips	learners	goodput	'
	json=$(dl-sim goodput --json | python3 -c '
import json, sys
for row in json.load(sys.stdin):
	print(row["mode"], row["chips"], row["goodput"])')
	tsv=$(echo "$output" | sed 1d | cut -f 1,2,4 | tr '\t' ' ')
	diff <(echo "$json" | sed 's/\.*0*$//') <(echo "$tsv" | sed 's/\.*0*$//')
}

@test "goodput: equal seeds, equal bytes; errors shrink with runs" {
	few='goodput --mode decoupled --chips 1M,2M -m 2,8 --time 5d'
	[ "$(dl-sim $few)" = "$(dl-sim $few)" ]
	[ "$(dl-sim $few)" != "$(dl-sim $few --seed 2)" ]
	[ "$(dl-sim $few | wc -l)" -eq 5 ]
	at_least "$(dl-sim $few -r 4 | sed -n 2p | cut -f 5)" \
		"$(dl-sim $few -r 64 | sed -n 2p | cut -f 5)"
}

@test "the kernels that a CPU has change no byte" {
	for job in 'goodput --time 2d' 'bandwidth --sites 2,8' \
		'fleet -m 3 --steps 100' 'plan --time 1d -m 2,8'; do
		baseline=$(DL_CPU=baseline dl-sim $job)
		for cpu in avx2 avx512; do
			[ "$(DL_CPU=$cpu dl-sim $job)" = "$baseline" ]
		done
	done
}

@test "goodput: what cannot be is refused" {
	for bad in '--mode rapid' '--chips 0' '--chips many' '-m 9 --chips 8' \
		'-k 9' '--slice 0' '--interrupted 0s' '--spread 1' \
		'-t 0s' '-r 0' '--slice 1 --chips 2.4M' '--checkpoint :5s' \
		'rest'; do
		run dl-sim goodput $bad
		echo "$bad: $status"
		[ "$status" -eq 64 ]
	done
}

# cell SYSTEM PUSH SITES COLUMN of the table on standard input
cell() {
	awk -F '\t' -v row="$1 $2 $3" -v what="$4" '
	NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
	$1 " " $2 " " $3 == row { print $at[what] }'
}

# Is the number $1 within $3 percent of $2?
near() {
	echo "$1 is to be near $2"
	awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN {
		d = a / b - 1; exit !(100 * (d < 0 ? -d : d) <= p) }'
}

@test "bandwidth: the paper's figures for 90%" {
	table=$(dl-sim bandwidth --sites 2,8)
	parallel=$(echo "$table" | cell data-parallel bf16 2 gbit)
	bf16=$(echo "$table" | cell decoupled bf16 2 gbit)
	int4=$(echo "$table" | cell decoupled int4 2 gbit)
	near "$parallel" 104 5
	near "$bf16" 1.7 5
	near "$int4" 0.43 5
	near "$(awk "BEGIN { print $parallel / $bf16 }")" 61 3
	near "$(awk "BEGIN { print $parallel / $int4 }")" 242 3
	near "$(echo "$table" | cell data-parallel bf16 8 gbit)" 198 1
	near "$(echo "$table" | cell decoupled int4 8 gbit)" 0.84 10
	# A fragment of 5G / 24 values in bf16 every 1 / 0.9 seconds.
	near "$(echo "$table" | cell decoupled bf16 2 sustained_gbit)" 3 0.1
}

@test "bandwidth: what a link comes to, there and back" {
	table=$(dl-sim bandwidth --link 104.2Gbit)
	near "$(echo "$table" | cell data-parallel bf16 2 utilisation)" 90 0.1
	[ "$(echo "$table" | cell decoupled bf16 2 utilisation)" = 100 ]
	table=$(dl-sim bandwidth --mode decoupled --link 1Gbit)
	near "$(echo "$table" | cell decoupled bf16 2 effective_h)" 80 0.1
	near "$(echo "$table" | cell decoupled bf16 2 carried)" 30 0.1
	# No link is faster than light.
	[ "$(dl-sim bandwidth --mode decoupled --delay 3s |
		cell decoupled bf16 2 gbit)" = - ]
	dl-sim bandwidth --delay 3s --json | python3 -c '
import json, sys
rows = json.load(sys.stdin)
assert rows[-1]["system"] == "decoupled" and rows[-1]["gbit"] is None'
}

@test "bandwidth: a fleet that waits spends as much of its time on steps" {
	# Fragments of 32 Gbit: 1.5 s, 3 s, or less than a step.
	for link in 21333Mbit:1500ms 10667Mbit:3s 64Gbit:500ms; do
		told=$(dl-sim bandwidth --mode decoupled --apart --model 24G \
			--push f32 --merge 10ms --link ${link%:*} |
			cell decoupled f32 2 carried)
		is=$(dl-sim fleet -m 4 --jitter 0 --wait -k 4 --delay 5ms \
			--transfer ${link#*:} --steps 3000 |
			field total utilisation%)
		near "$is" "$told" 3
	done
}

@test "bandwidth: a layout tells of values and fragments" {
	cd "$BATS_TEST_TMPDIR"
	dl-train init -q -L 2 -H 2 -d 16 -c 16 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	values=$(awk '!/^#/ { n += $4 } END { print n }' layout.tsv)
	most=$(awk '!/^#/ { n[$5] += $4 } END {
		for (i in n) if (n[i] > m) m = n[i]; print m }' layout.tsv)
	a=(bandwidth --mode decoupled --link 100Mbit)
	largest=$(awk "BEGIN { printf \"%.17g\", 3 * $most / $values }")
	[ "$(dl-sim "${a[@]}" --layout layout.tsv)" = \
		"$(dl-sim "${a[@]}" --model "$values" -n 3 \
			--largest "$largest")" ]
	run dl-sim bandwidth --layout none.tsv
	[ "$status" -eq 66 ]
}

@test "bandwidth: what cannot be is refused" {
	for bad in '--mode all' '--model 0' '--push int3' '--sites 1' '-m 0' \
		'-n 0' '-H 0' '-t 0s' '--backward 2' '-u 0' '-u 101' \
		'--link 0' '--largest 0.5' 'rest'; do
		run dl-sim bandwidth $bad
		echo "$bad: $status"
		[ "$status" -eq 64 ]
	done
}

# column NAME of the table on standard input
column() {
	awk -F '\t' -v what="$1" '
	NR == 1 { sub(/^# /, ""); for (i = 1; i <= NF; i++) at[$i] = i; next }
	{ print $at[what] }'
}

@test "plan: the best first, as many as wanted, all within the link" {
	table=$(dl-sim plan --time 2d --link 2Gbit -n 7)
	[ "$(echo "$table" | wc -l)" -eq 8 ]
	useful=$(echo "$table" | column useful | sed 's/$/ 1/' |
		awk '{ printf "%.0f\n", $1 }')
	[ "$useful" = "$(echo "$useful" | sort -rn)" ]
	at_least 2 "$(echo "$table" | column sustained_gbit | sort -g | tail -n 1)"
	[ "$(dl-sim plan --time 2d --link 2Gbit -n 7)" = "$table" ]
}

@test "plan: a narrow link wants int4 and a larger H" {
	wide=$(dl-sim plan --time 2d --push bf16 -m 8 -k 1)
	[ "$(echo "$wide" | column h)" = 24 ]
	narrow=$(dl-sim plan --time 2d --push bf16 -m 8 -k 1 --link 1Gbit)
	at_least "$(echo "$narrow" | column h)" 96
	[ "$(dl-sim plan --time 2d -n 1 -m 8 -k 1 --link 1Gbit |
		column push)" = int4 ]
	# More failures want more learners.
	[ "$(dl-sim plan --time 2d -m 2,8 -k 1 --chips 600k -n 1 |
		column learners)" = 8 ]
}

@test "plan: one answer is no" {
	run dl-sim plan --time 1d --link 1Mbit
	[ "$status" -eq 1 ]
	[[ $output == *"no choice fits a link of 0.001 Gbit/s: the least needs "* ]]
	run dl-sim plan --time 1d --delay 1m
	[ "$status" -eq 1 ]
	[[ $output == *"no choice fits any link"* ]]
	for bad in '-m 0' '-m 1001' '-H 0' '--chips 4' '--push none' '-n 0' \
		'--link slow' 'rest'; do
		run dl-sim plan $bad
		echo "$bad: $status"
		[ "$status" -eq 64 ]
	done
}

@test "what cannot be is refused" {
	for bad in '' 'fleet -m 0' 'fleet --grace soon' 'fleet --late never' \
		'fleet -t 0s' 'fleet -t 1s+2s' 'fleet --apply blend:2' \
		'fleet --extra 1:0s:1s:1s:1s' 'fleet --link 0' \
		'fleet --regroup soon' 'fleet -r 0' 'fleet --push f7' \
		'fleet rest' 'flee' 'fleet --below-quorum merge'; do
		run dl-sim $bad
		echo "$bad: $status"
		[ "$status" -eq 64 ]
	done
}
