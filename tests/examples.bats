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

# Debian's PyTorch is there for Debian's Python only; its import takes seconds.
need_torch() {
	export PYTHONDONTWRITEBYTECODE=1
	pytorch=$abs_top_srcdir/examples/pytorch
	for python in python3 /usr/bin/python3; do
		"$python" -c 'import importlib.util as i; i.find_spec("torch").name' \
			2>/dev/null && return
	done
	skip "there is no PyTorch"
}

@test "pytorch: dl-train and train_lm.py agree on a model" {
	need_torch
	cd "$BATS_TEST_TMPDIR"
	seq 2000 | sed 's/.*/& bottles of beer on the wall/' >text
	dl-train init -q -L 2 -H 4 -K 2 -d 32 -c 32 start
	dl-train run -q --steps 30 -o trained start text
	mine=$(dl-train eval trained text | tail -n 1 | cut -f 2)
	theirs=$("$python" "$pytorch/train_lm.py" --eval trained text)
	echo "$mine $theirs"
	awk -v a="$mine" -v b="$theirs" \
		'BEGIN { exit !(a - b < 1.5e-4 && b - a < 1.5e-4) }'
}

# end_after NAME...: the run of syncer and learners ends once each of these has
# pushed four times, as they may begin many seconds apart.
end_after() {
	local name p
	for name; do
		until [ "$(grep -c "\"push\".*\"$name\"" tape)" -ge 4 ]; do
			sleep 0.2
		done
	done
	dl-sync end unix:s
	for p in "${learners[@]}" $syncer; do
		wait "$p"
	done
}

@test "pytorch: two learners beside two of dl-train" {
	need_torch
	cd "$BATS_TEST_TMPDIR"
	seq 2000 | sed 's/.*/& bottles of beer on the wall/' >text
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	dl-sync serve -q --store store --listen unix:s -H 12 --fragments 2 \
		--tape tape -o out.safetensors start 3>&- &
	syncer=$!
	learners=()
	for name in ann ben; do
		dl-learn -q -n $name unix:s -- dl-train run -q -b 4 \
			--step-time 50ms start text 3>&- &
		learners+=($!)
	done
	for name in cid dee; do
		dl-learn -q -n $name unix:s -- "$python" "$pytorch/train_lm.py" \
			-b 4 start text 2>$name.log 3>&- &
		learners+=($!)
	done
	end_after ann ben cid dee
	cat cid.log
	grep 'dl_trainer: .* steps in .* between steps' cid.log
	before=$(dl-train eval start text | tail -n 1 | cut -f 2)
	after=$(dl-train eval --config start/config.json out.safetensors text |
		tail -n 1 | cut -f 2)
	awk -v a="$after" -v b="$before" 'BEGIN { exit !(a < b) }'
}

@test "pytorch: pictures, and what batches are normalized by" {
	need_torch
	cd "$BATS_TEST_TMPDIR"
	# Each digit is one row of ink, and some noise.
	awk 'BEGIN {
		for (i = 0; i < 600; i++) {
			for (p = 0; p < 64; p++)
				printf "%d,", (int(p / 8) == i % 8) * 12 + i * p % 5
			print i % 8
		}
	}' >digits.csv
	digits=("$python" "$pytorch/train_digits.py")
	"${digits[@]}" --init start.safetensors
	dl-sync serve -q --store store --listen unix:s -H 12 --fragments 2 \
		--tape tape -o out.safetensors start.safetensors 3>&- &
	syncer=$!
	learners=()
	for name in ann ben; do
		dl-learn -q -n $name unix:s -- "${digits[@]}" digits.csv 3>&- &
		learners+=($!)
	done
	end_after ann ben
	run "${digits[@]}" --eval out.safetensors digits.csv
	echo "$output"
	awk '{ exit !($1 > 0.5) }' <<<"$output"
}

@test "pytorch: --check is content" {
	[ -n "${DL_TORCH:-}" ] || skip "starts 25 trainers: DL_TORCH=1"
	need_torch
	cd "$BATS_TEST_TMPDIR"
	seq 200 | sed 's/.*/& bottles of beer on the wall/' >text
	dl-train init -q -L 1 -H 2 -d 16 -c 16 start
	run dl-learn --check start -- "$python" "$pytorch/train_lm.py" \
		-b 2 start text
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c $'\tok$' <<<"$output")" -eq 21 ]
}
