#!/usr/bin/env bats
#
# dl-stat: tapes in, figures out.
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
}

# Lines of a tape of one fragment; a second has 1000000000 nanoseconds.
layout=$(printf '%064d' 0)
start() { # SECOND SAVED
	printf '{"format":"dl-tape 1","wall":%d000000000,"now":%d000000000,' \
		$((1700000000 + $1)) $((1000 + $1))
	printf '"run":"demo","layout":"%s","config":{' "$layout"
	printf '"fragments":1,"h":4,"shard":0,"shards":0,'
	printf '"quorum":%d,"tau":1,' "${quorum:-2}"
	printf '"min_h":0,"grace":"none","gamma":0.9,"grace_ns":0,'
	printf '"late":"drop","below":"wait","below_ns":0,'
	printf '"stall_ns":60000000000,"end_ns":60000000000,"max_rate":16,'
	printf '"max_norm":8,"refuse_norm":100,"budget_tokens":0,'
	printf '"budget_steps":0,"passes":"no"},"saved":%s}\n' "${2:-null}"
}
event() { # SECOND KIND LEARNER REST
	printf '{"event":"%s","wall":%d000000000,"now":%d000000000' \
		"$2" $((1700000000 + $1)) $((1000 + $1))
	[ -z "$3" ] || printf ',"learner":"%s","instance":7' "$3"
	printf '%s}\n' "${4:+,$4}"
}
join() { # SECOND LEARNER STEPS
	event "$1" join "$2" "\"clock\":$3,\"steps\":$3,\"tokens\":$((100 * \
$3)),\"versions\":[\"0.0\"]"
}
step() { # SECOND LEARNER STEPS
	event "$1" step "$2" "\"clock\":$3,\"steps\":$3,\"tokens\":$((100 * \
$3)),\"loss\":2.5"
}
push() { # SECOND LEARNER SEQ STEP STEPS NORM
	event "$1" push "$2" "\"fragment\":0,\"seq\":$3,\"step\":$4,\"steps\":\
$5,\"tokens\":$(($5 * 100)),\"base\":\"1.0\",\"norm\":$6,\"push\":$3,\"elements\":1000,\"bytes\":800"
}
applied() { # SECOND LEARNER NUMBER
	event "$1" applied "$2" "\"fragment\":0,\"version\":\"1.$3\",\
\"elements\":2000,\"bytes\":4000"
}
merged() { # SECOND NUMBER
	event "$1" merged '' "\"fragment\":0,\"version\":\"1.$2\""
}

# Two learners, one round; b is late once and sends NaN once, then leaves.
one_round() {
	start 0
	join 1 a 0
	join 1 b 0
	for s in 1 2 3 4; do
		step $((1 + s)) a $s
		step $((1 + s)) b $s
	done
	push 6 a 1 4 4 1.5
	push 6 b 1 4 4 1
	merged 7 1
	applied 7 a 1
	step 7 b 5
	push 8 b 2 4 1 1
	push 8 b 3 5 1 '"nan"'
	event 11 leave b
	step 21 a 10
}

# By eyes: name, state, steps, ... of one member.
line() {
	awk -F '\t' -v name="$1" '$1 == name' <<<"$output"
}

@test "members, figure by figure" {
	one_round >tape
	run dl-stat -t tape
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "$(printf '# name\tstate\tsteps\tclock\ttokens\t%s' \
		"$(printf 'steps/s\trounds\ttook-part\th\tpushes\tlate\t%s' \
		"$(printf 'wasted\trefused\tseen\tloss\tup\tup-x\tdown\tdown-x')")")" ]
	printf 'a\there\t10\t10\t1000\t0.5\t1\t1\t4\t1\t0\t0\t-\t%s\t2.5\t%s\n' \
		2023-11-14T22:13:41Z $'800\t5\t4000\t2' >want
	printf 'b\tgone\t5\t5\t500\t0.5\t1\t1\t4\t3\t1\t100\tfinite:1\t%s\t2.5\t%s\n' \
		2023-11-14T22:13:31Z $'2400\t5\t0\t-' >>want
	printf '*\t-\t15\t10\t1500\t1\t2\t1\t4\t4\t1\t100\tfinite:1\t%s\t-\t%s\n' \
		2023-11-14T22:13:41Z $'3200\t5\t4000\t2' >>want
	tail -n +2 <<<"$output" | diff want -
	[ "${#lines[@]}" -eq 4 ]
}

@test "the table says the same to eyes" {
	one_round | dl-stat - >table
	cat table
	grep -q '^run demo: epoch 1, 1 start, 21.0s$' table
	grep -q '^clock 10, rounds 2, merges 1, members 2.0, reports 2.0, h 4.0$' \
		table
	grep -q '^tokens 1500, wasted 100 (6.67%)$' table
	grep -q '^bytes up 3.* (f32: 5.00 times as many), down .* (2.00 times)$' \
		table
	grep -Eq '^a +here +10 +10 +1000 +0.50 +1 +100% +4.0 ' table
	grep -Eq '^b +gone .* finite:1 +10.0s +2.500 .* 5.00 +0 B +-$' table
}

@test "a syncer that starts again goes on counting" {
	one_round >tape
	start 3 '{"epoch":1,"clock":4,"tokens":800,"fragments":[{"version":"1.1","step":4,"norms":[]}],"learners":[{"name":"a","instance":7,"merged":[1]},{"name":"b","instance":7,"merged":[1]}]}' \
		>>tape
	join 4 a 12 >>tape
	step 6 a 14 >>tape
	run dl-stat tape
	echo "$output"
	grep -q '^run demo: epoch 2, 2 starts, 6.0s$' <<<"$output"
	grep -q 'tokens 1000, ' <<<"$output"
	run dl-stat -t tape
	echo "$output"
	# Ten steps before, two after; those made in between are nobody's.
	[[ $(line a) = $'a\there\t12\t'* ]]
	[[ $(line b) = $'b\tgone\t5\t5\t500\t'* ]]
}

@test "half a line at the end is left out and told" {
	one_round >tape
	printf '{"event":"st' >>tape
	run --separate-stderr dl-stat tape
	[ "$status" -eq 0 ]
	[ "$stderr" = "dl-stat: tape: the last line is torn; left out" ]
	run --separate-stderr dl-stat -q tape
	[ "$status" -eq 0 ] && [ -z "$stderr" ]
}

@test "a tape may be compressed" {
	command -v zstd >/dev/null || skip "no zstd program"
	one_round >tape
	dl-stat -t tape >want
	zstd -qc tape | dl-stat -t - | cmp - want
	zstd -qc tape | head -c 100 >cut
	run dl-stat -t cut
	[ "$status" -eq 65 ]
	[[ $output = *"cut: line 1: zstd: ends inside a frame" ]]
}

@test "learners that only take turns are told of" {
	quorum=1
	{
		start 0
		join 1 a 0
		join 1 b 0
		step 1 a 1
		step 1 b 1
		for r in 1 2 3 4 5 6 7 8 9 10 11 12; do
			step $((4 * r)) a $((4 * r))
			step $((4 * r)) b $((4 * r))
			push $((4 * r)) a "$r" $((4 * r)) 3 1
			merged $((4 * r)) "$r"
		done
	} >tape
	run --separate-stderr dl-stat tape
	echo "$stderr"
	[ "$status" -eq 0 ]
	[[ $stderr = "dl-stat: learners only take turns: 1.00 of 2.00 "* ]]
	one_round >tape
	run --separate-stderr dl-stat tape
	[ "$status" -eq 0 ] && [ -z "$stderr" ]
}

@test "what is no tape is refused, and nothing printed" {
	one_round >tape
	echo '{"event":"note"}' >>tape
	run --separate-stderr dl-stat tape
	echo "$stderr"
	[ "$status" -eq 65 ] && [ -z "$output" ]
	[ "$stderr" = "dl-stat: tape: line 21: JSON byte 9: an event that is not known here" ]
	run dl-stat /dev/null
	[ "$status" -eq 65 ]
	run dl-stat missing
	[ "$status" -eq 66 ]
	run dl-stat
	[ "$status" -eq 64 ]
	run dl-stat a b
	[ "$status" -eq 64 ]
}
