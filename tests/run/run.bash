# What the tests of whole runs share: a tiny model, programs in the
# background, and waiting for what shall come true.

run_setup() {
	cd "$BATS_TEST_TMPDIR" || return
	unset DL_TRAINER DL_LAYOUT DL_SEED DL_SLOT
	link=unix:$BATS_TEST_TMPDIR/s
	scratch=$BATS_TEST_TMPDIR/scratch
	mkdir "$scratch"
	declare -gA pid=()
	for i in $(seq 400); do
		echo "$i bottles, and if one of them falls: $((i * i % 97)) left."
	done >text
	dl-train init -q -L 1 -H 2 -d 16 -c 16 -s 3 m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
}

run_teardown() {
	for p in "${pid[@]}"; do
		kill -9 "$p" 2>/dev/null || true
	done
	wait
	[ -n "$BATS_TEST_COMPLETED" ] || tail -n 20 ./*.log
}

# background NAME COMMAND...: runs it with its output in NAME.log.
background() {
	local name=$1
	shift
	"$@" >>"$name.log" 2>&1 3>&- &
	pid[$name]=$!
}

# syncer [OPTION...]: a run in the folder store, noted on tape.
syncer() {
	background syncer dl-sync serve --store store --listen "$link" \
		--layout layout.tsv -H 6 --tape tape -o out.safetensors "$@" \
		m/model.safetensors
}

# learner NAME [OPTION...]: one that trains with dl-train, 10 ms a step.
learner() {
	local name=$1
	shift
	[[ $link == dir:* ]] || set -- --heartbeat 300ms "$@"
	background "$name" dl-learn -n "$name" --scratch "$scratch" \
		"$@" "$link" -- \
		dl-train run -q -b 2 --step-time 10ms m text
}

# ends NAME: it exits, and with 0.
ends() {
	local code=0

	wait "${pid[$1]}" || code=$?
	unset "pid[$1]"
	[ "$code" -eq "${2:-0}" ]
}

# kill_hard NAME: as a machine that fails does.
kill_hard() {
	kill -9 "${pid[$1]}"
	wait "${pid[$1]}" || true
	unset "pid[$1]"
}

# wait_for COMMAND...: until it succeeds, a minute at most.
wait_for() {
	local end=$((SECONDS + 60))

	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

# has N PATTERN FILE: at least N lines of it match.
has() {
	[ "$(grep -c -- "$2" "$3")" -ge "$1" ]
}

# not COMMAND...: it fails. A command that ! negates fails no test.
not() {
	! "$@"
}

# merged: how many merges the tape tells of.
merged() {
	grep -c '"merged"' tape || true
}

# pushed NAME [N]: the syncer has got at least so many pushes of it.
pushed() {
	has "${2:-1}" "\"push\".*\"learner\":\"$1\"" tape
}

# away N PATTERN: the syncer's log has exactly so many lines about peers who were
# sent away that match, or counts them among those left out.
away() {
	wait_for away_at_least "$1" "$2"
	! away_at_least $(($1 + 1)) "$2"
}

away_at_least() {
	[ "$(awk -v pattern="$2" '$0 ~ pattern { n++ }
		/^dl-sync: and [0-9]+ more$/ { n += $3 } END { print n + 0 }' \
		syncer.log)" -ge "$1" ]
}

# room KB: the same, or what a program that a sanitizer watches needs.
room() {
	if ldd "$(command -v dl-sync)" | grep -q 'lib[at]san'; then
		echo $((20 * $1))
	else
		echo "$1"
	fi
}

held_out() {
	dl-train eval --config m/config.json "$1" text | tail -n 1 | cut -f 2
}

# The model of the run is a model, and better than the one it began with.
is_better() {
	dl-frag check out.safetensors
	awk -v before="$(held_out m/model.safetensors)" \
		-v after="$(held_out out.safetensors)" \
		'BEGIN { exit !(after < before) }'
}
