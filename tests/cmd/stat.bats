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
		"$(printf 'wasted\trefused\tseen\tloss\tup\tup-x\tdown\t%s' \
		"$(printf 'down-x\tlag\tweight')")")")" ]
	printf 'a\ttraining\t10\t10\t1000\t0.5\t1\t1\t4\t1\t0\t0\t-\t%s\t2.5\t%s\n' \
		2023-11-14T22:13:41Z $'800\t5\t4000\t2\t0\t0.5' >want
	printf 'b\taway\t5\t5\t500\t0.5\t1\t1\t4\t3\t1\t100\tfinite:1\t%s\t2.5\t%s\n' \
		2023-11-14T22:13:31Z $'2400\t5\t0\t-\t5\t0.5' >>want
	printf '*\t-\t15\t10\t1500\t1\t2\t1\t4\t4\t1\t100\tfinite:1\t%s\t-\t%s\n' \
		2023-11-14T22:13:41Z $'3200\t5\t4000\t2\t-\t1' >>want
	tail -n +2 <<<"$output" | diff want -
	[ "${#lines[@]}" -eq 4 ]
}

@test "the table says the same to eyes" {
	one_round | dl-stat - >table
	cat table
	grep -q '^run demo: epoch 1, 1 start, 21.0s$' table
	grep -q '^clock 10, rounds 2, merges 1, members 2.0, reports 2.0, h 4.0$' \
		table
	# Useful: 28 s of 40 that members were there, less 100 tokens of 1500.
	grep -q '^tokens 1500, wasted 100 (6.67%), goodput 65%, uptime 100%$' \
		table
	grep -q '^bytes up 3.* (f32: 5.00 times as many; 6.40 bits a value)' \
		table
	grep -q 'down 4.* (f32: 2.00 times as many; 16.00 bits a value)$' table
	grep -Eq '^a +training +10 +10 +1000 +0.50 +1 +100% +4.0 ' table
	grep -Eq '^b +away .* finite:1 +10.0s +2.500 .* 5.00 +0 B +- +5 +50%$' \
		table
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
	[[ $(line a) = $'a\ttraining\t12\t'* ]]
	[[ $(line b) = $'b\taway\t5\t5\t500\t'* ]]
}

@test "a table of fragments, and of who did what when" {
	one_round >tape
	run dl-stat -t -T fragments tape
	[ "${lines[0]}" = "$(printf '# fragment\tversion\tcommitted\t%s\t%s' \
		$'rounds\tmerges\tmembers\ttook-part\topen\tnorm' \
		$'cosine\tcosine-min')" ]
	[ "${lines[1]}" = "$(printf '0\t1.1\t2023-11-14T22:13:27Z\t2\t1\t%s' \
		$'2\t1\t1\t0.48\t-\t-')" ]
	[ "${#lines[@]}" -eq 2 ]
	printf '%s\n' $'# name\tnumber\tfrom\tto\tstate' \
		$'a\t0\t0\t1\tunknown' $'a\t0\t1\t2\tjoining' \
		$'a\t0\t2\t21.04\ttraining' $'b\t1\t0\t1\tunknown' \
		$'b\t1\t1\t2\tjoining' $'b\t1\t2\t11\ttraining' \
		$'b\t1\t11\t21.04\taway' >want
	dl-stat -t -T timeline tape | diff want -
	dl-stat -t -T history tape >history
	# All of it is there, however it is cut.
	awk -F '\t' 'NR > 1 { tokens += $2; wasted += $3; up += $12
		training += $7; due += $8; refused += $14 } END {
		print tokens, wasted, up, training, due, refused
	}' history | grep -qx '1500 100 3200 28 40 1'
}

@test "how alike pushes were, when the tape says so" {
	one_round | sed "/\"merged\"/s/}$/,\"values\":\"$layout\",\
\"momentum\":\"$layout\",\"trail\":\"${layout:0:16}\",\"cosine\":0.25,\
\"cosine_min\":-0.5}/" >tape
	grep '"cosine_min":-0.5}$' tape
	dl-stat -t -T fragments tape | grep -P '^0\t.*\t0.25\t-0.5$'
	dl-stat -T fragments tape | grep ' 0.250 .* -0.500$'
	dl-stat --prometheus tape | grep 'push_cosine{.*} 0.25$'
	dl-stat --json tape | grep '"cosine":0.25,"cosine_min":-0.5}'
}

@test "who said that it leaves is gone, who comes back has trained on" {
	{
		start 0
		join 0 a 0
		join 0 b 0
		step 1 a 1
		step 1 b 1
		event 2 leave a
		event 3 drained b
		event 3 leave b
		# Cut off for 4 s, in which it made 4 steps.
		join 6 a 5
		step 7 a 6
		event 8 step a '"clock":7,"steps":7,"tokens":700,"loss":"nan"'
	} >tape
	dl-stat -t -T timeline tape | cut -f 1,3-5 >got
	printf '%s\n' $'# name\tfrom\tto\tstate' $'a\t0\t1\tjoining' \
		$'a\t1\t8.01\ttraining' $'b\t0\t1\tjoining' \
		$'b\t1\t3\ttraining' $'b\t3\t8.01\tgone' | diff - got
	run dl-stat -t tape
	[[ $(line a) = $'a\ttraining\t7\t'* ]]
	[[ $(line b) = $'b\tgone\t1\t'* ]]
}

@test "one that makes no step for --stall is stalled from then on" {
	{
		start 0
		join 0 a 0
		join 0 b 0
		step 10 a 1
		step 10 b 1
		step 100 b 5
		step 200 a 6
	} >tape
	dl-stat -t -T timeline tape | awk '$1 == "a" { print $4 - $3, $5 }' >got
	cat got
	# To a bucket: 60 s in which it was not told yet, 130 until it stepped.
	awk 'NR == 1 { exit !($1 > 9 && $2 == "joining") }' got
	awk '$2 == "training" { t += $1 } $2 == "stalled" { s += $1 }
		END { exit !(t > 59 && t < 62 && s > 129 && s < 131) }' got
	dl-stat tape | grep 'uptime 63%'
}

@test "a tape that was moved away is read as one with what follows" {
	one_round >whole
	head -n 10 whole >tape
	dl-stat -w 100ms -t -o now tape &
	watcher=$!
	for i in $(seq 600); do
		[ -s now ] && break
		sleep 0.05
	done
	mv tape tape.1
	sed -n '11,$p' whole >tape.new
	mv tape.new tape
	for i in $(seq 600); do
		dl-stat -t whole | cmp -s - now && break
		sleep 0.05
	done
	kill "$watcher"
	dl-stat -t whole | diff - now
	cat tape.1 tape | dl-stat -t - | diff - now
}

@test "all figures as JSON, and back to the same" {
	one_round >tape
	dl-stat --json tape >figures
	python3 - figures <<-'END'
		import json, sys
		f = json.load(open(sys.argv[1]))
		assert f["format"] == "dl-stat 1" and f["run"] == "demo"
		t, a, b = f["totals"], *f["members"]
		assert t["tokens"] == 1500 and t["participation"] == 1
		assert abs(t["goodput"] - 28 / 40 * 14 / 15) < 1e-9
		assert t["up_bits"] == 6.4 and t["down_bits"] == 16
		assert a["state"] == "training" and b["state"] == "away"
		assert b["refused_finite"] == 1 and b["wasted"] == 100
		assert b["away_ns"] == 10 * 10**9 and b["lag"] == 5
		assert f["all"]["tokens"] == 1500
		assert f["fragments"][0]["version"] == "1.1"
		h = f["history"]
		assert len(a["timeline"]) == len(h["buckets"])
		assert sum(x["tokens"] for x in h["buckets"]) == 1500
	END
}

@test "metrics for Prometheus are as its format says" {
	one_round >tape
	dl-stat --prometheus tape >metrics
	python3 "$abs_top_srcdir/tests/cmd/metrics.py" metrics
	grep -qx 'dl_run_tokens_total{run="demo"} 1500' metrics
	grep -qx 'dl_learner_refused_total{run="demo",learner="b",reason="finite"} 1' \
		metrics
	grep -qx 'dl_learner_state{run="demo",learner="b",state="away"} 1' metrics
	grep -qx 'dl_learner_state_seconds_total{run="demo",learner="b",state="away"} 10' \
		metrics
	grep -qx 'dl_run_last_event_timestamp_seconds{run="demo"} 1700000021' \
		metrics
	# Not one metric of an empty run is not a number that can be read.
	start 0 | dl-stat --prometheus - >empty
	python3 "$abs_top_srcdir/tests/cmd/metrics.py" empty
	grep -qx 'dl_run_goodput_ratio{run="demo"} NaN' empty
}

page_ok() {
	python3 "$abs_top_srcdir/tests/cmd/page.py" "$1"
}

@test "a page of a run" {
	one_round >tape
	dl-stat --html page.html tape
	page_ok page.html
	grep -q '<b>1500</b><span>tokens</span>' page.html
	grep -q '<title>b, away 10s, joining 1s, training 9s, joined 1 time</title>' \
		page.html
	# One without anything to show yet.
	start 0 | dl-stat --html empty.html -
	page_ok empty.html
	run dl-stat --html no/page.html tape
	[ "$status" -eq 73 ]
	echo before >kept
	run dl-stat --html kept missing
	[ "$status" -eq 66 ]
	[ "$(cat kept)" = before ]
}

@test "a page of 64 learners, of which some die, and whose syncer does" {
	dl-sim fleet -m 64 --steps 200 -t 250ms+60ms --deaths 1m:10s \
		--crashes 30s:5s --liars 1 --tape raw >table
	python3 "$abs_top_srcdir/tests/cmd/dress.py" <raw >tape
	dl-stat --html page.html tape
	page_ok page.html
	[ "$(grep -c '<g><title>' page.html)" -eq 64 ]
	[ "$(wc -c <page.html)" -lt 2000000 ]
	# What the syncer counted is what the simulation did.
	dl-stat -t tape | awk -F '\t' '$1 == "*" { print $8 * 100 }' >is
	awk -F '\t' '$1 == "total" { print $4 }' table >was
	paste is was | awk '{ exit !($1 - $2 < 0.1 && $2 - $1 < 0.1) }'
	dl-stat --json tape >figures
	[ "$(grep -c '^{"name":' figures)" -eq 64 ]
}

@test "output is whole or not there" {
	one_round >tape
	dl-stat -t -o out tape
	dl-stat -t tape | cmp - out
	run dl-stat -t -o no/out tape
	[ "$status" -eq 73 ]
	run dl-stat -t --json tape
	[ "$status" -eq 64 ]
	run dl-stat --json -T members tape
	[ "$status" -eq 64 ]
	run dl-stat -T nothing tape
	[ "$status" -eq 64 ]
}

@test "half a line at the end is left out and told" {
	one_round >tape
	printf '{"event":"st' >>tape
	run --separate-stderr dl-stat tape
	[ "$status" -eq 0 ]
	[ "$stderr" = "dl-stat: tape: the last line is torn; left out" ]
	run --separate-stderr dl-stat -q tape
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
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
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
}

@test "what is no tape is refused, and nothing printed" {
	one_round >tape
	echo '{"event":"note"}' >>tape
	run --separate-stderr dl-stat tape
	echo "$stderr"
	[ "$status" -eq 65 ]
	[ -z "$output" ]
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
