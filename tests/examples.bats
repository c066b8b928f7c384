#!/usr/bin/env bats
# The scripts in examples/ do what they say, each in a folder of its own.

teardown() {
	[ -z "${cloud:-}" ] || kill "$cloud" 2>/dev/null || true
}

example() {
	"$abs_top_srcdir/examples/$1" "$BATS_TEST_TMPDIR/a run"
}

@test "ssh.sh" {
	PATH=$PATH:/usr/sbin command -v sshd || skip "there is no sshd"
	example ssh.sh
}

@test "round-by-hand.sh" {
	example round-by-hand.sh
	cd "$BATS_TEST_TMPDIR/a run"
	dl-frag check -l layout.tsv merged.safetensors
	[ "$(dl-frag show momentum | grep -c dl.kind=momentum)" -eq 4 ]
}

@test "cron-spool.sh" {
	example cron-spool.sh
}

@test "spool-learner.sh" {
	cd "$BATS_TEST_TMPDIR"
	seq 10000 | sed 's/.*/& bottles of beer on the wall/' >text
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	options=(-H 6 --quorum 2 --steps 100)
	dl-sync run "${options[@]}" --fragments 2 spool start || [ $? -eq 75 ]
	STEPS=12 BATCH=2 POLL=0.1 "$abs_top_srcdir/examples/spool-learner.sh" \
		spool script start/config.json text 3>&- &
	script=$!
	until [ -e spool/learner/script ]; do
		sleep 0.1
	done
	dl-learn -q -n program --poll 100ms dir:spool -- dl-train run -q -b 2 \
		--step-time 50ms start text 3>&- &
	program=$!
	tries=0
	until grep -q 'state done' spool/global/latest; do
		dl-sync run "${options[@]}" -o out.safetensors spool ||
			[ $? -eq 75 ]
		tries=$((tries + 1))
		[ $tries -lt 300 ]
		sleep 0.1
	done
	wait $script
	wait $program
	[ -z "$(ls spool/refused)" ]
	[ "$(grep -c '"push".*"learner":"script"' spool/store/tape)" -ge 2 ]
	dl-frag check -l spool/layout.tsv out.safetensors
}

@test "plan-a-run.sh" {
	cd "$BATS_TEST_TMPDIR"
	example plan-a-run.sh >said
	# What it says is what was best.
	h=$(sed -n 2p "$BATS_TEST_TMPDIR/a run/plan.tsv" | cut -f 4)
	grep -q -- "	-H $h --tau [0-9]* --quorum [0-9]* --global" said
	cut -f 1 "$BATS_TEST_TMPDIR/a run/bandwidth.tsv" | grep -q decoupled
	# No plan, no commands.
	LINK=10kbit run example plan-a-run.sh
	[ "$status" -eq 1 ]
	[[ $output != *dl-learn* ]]
}

@test "plots/draw.sh" {
	example plots/draw.sh
	cd "$BATS_TEST_TMPDIR/a run"
	for table in goodput bandwidth scavenging; do
		head -n 1 $table.tsv | grep -q '^# '
	done
	# A half more for half of the time.
	awk '/^decoupled\t50/ { n++; d = $3 - 0.83; if (d * d > 0.0004) n = 9 }
		END { exit n != 1 }' scavenging.tsv
	command -v gnuplot || skip "there is no gnuplot to draw them"
	for figure in goodput bandwidth scavenging; do
		grep -q '</svg>' $figure.svg
	done
	# Each system has its line.
	for system in rigid elastic decoupled 'the paper'; do
		grep -q "$system" goodput.svg
	done
	for system in data-parallel diloco streaming decoupled; do
		grep -q "$system, int4\|$system, bf16" bandwidth.svg
	done
}

@test "two-sites.sh" {
	command -v rsync || skip "there is no rsync"
	example two-sites.sh
}

@test "spot.sh" {
	command -v curl || skip "there is no curl"
	cd "$BATS_TEST_TMPDIR"
	seq 10000 | sed 's/.*/& bottles of beer on the wall/' >text
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	dl-sync serve -q --store store --listen unix:s -H 6 --fragments 2 \
		--tape tape start 3>&- &
	syncer=$!
	learn=(dl-learn -q -n spot --heartbeat 300ms unix:s --
		dl-train run -q -b 2 --step-time 10ms start text)
	# The cloud's metadata service, which has no notice yet.
	mkdir cloud
	python3 -u -m http.server -b 127.0.0.1 -d cloud 0 >http 2>&1 3>&- &
	cloud=$!
	until grep -q 'port [1-9]' http; do
		sleep 0.1
	done
	url=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' http)/notice
	POLL=0.1 "$abs_top_srcdir/examples/spot.sh" "$url" "${learn[@]}" 3>&- &
	spot=$!
	until grep -q '"push".*"spot"' tape && grep -q ' 404 ' http; do
		sleep 0.1
	done
	echo '{"action":"terminate"}' >cloud/notice
	wait $spot
	# What it had done arrived before it left.
	grep '"leave".*"spot"' tape
	pushes=$(grep -c '"push".*"spot"' tape)
	# The machine that replaces it.
	"${learn[@]}" 3>&- &
	spot=$!
	until [ "$(grep -c '"push".*"spot"' tape)" -gt "$pushes" ]; do
		sleep 0.1
	done
	dl-sync end unix:s
	wait $spot
	wait $syncer
}

# run_of MODEL STEPS COMMAND...: two learners of it in one run.
run_of() {
	local model=$1 steps=$2 learners=()
	shift 2
	dl-sync serve -q --store store --listen unix:s -H 6 --fragments 2 \
		--steps "$steps" --tape tape -o out.safetensors "$model" 3>&- &
	syncer=$!
	for name in ann ben; do
		dl-learn -q -n $name unix:s -- "$@" 3>&- &
		learners+=($!)
	done
	for p in "${learners[@]}" $syncer; do
		wait "$p"
	done
	for name in ann ben; do
		grep -q "\"push\".*\"$name\"" tape
	done
	dl-frag check out.safetensors
}

@test "sh-trainer" {
	cd "$BATS_TEST_TMPDIR"
	sh=$abs_top_srcdir/examples/sh-trainer/sh-trainer
	python3 -S "$abs_top_srcdir/tests/run/tiny_model.py"
	dl-learn --check tiny.safetensors -- "$sh"
	run_of tiny.safetensors 18 "$sh"
}

@test "c-trainer" {
	cd "$BATS_TEST_TMPDIR"
	"${CC:-cc}" -O2 -Wall -Wextra -o c-trainer \
		"$abs_top_srcdir/examples/c-trainer/c-trainer.c" -lm
	seq 10000 | sed 's/.*/& bottles of beer on the wall/' >text
	./c-trainer init start.safetensors
	dl-learn --check start.safetensors -- ./c-trainer text
	run_of start.safetensors 60 ./c-trainer text
}

@test "plots/run.sh" {
	command -v gnuplot || skip "there is no gnuplot"
	cd "$BATS_TEST_TMPDIR"
	dl-sim fleet -m 3 --steps 100 -t 200ms+20ms --deaths 10s:2s \
		--tape tape >table
	"$abs_top_srcdir/examples/plots/run.sh" tape "a run"
	for figure in loss rates lanes; do
		grep -q '</svg>' "a run/$figure.svg"
	done
	[ "$(cut -f 1 "a run/timeline.tsv" | sort -u | wc -l)" -eq 4 ]
}
