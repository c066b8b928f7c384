#!/bin/sh
# One language model, four learners, one syncer, two accidents: a learner is
# killed and comes back, the syncer is restarted, and nothing stops. Takes
# about two minutes on two cores. Run it by `make demo`, or with the programs
# on PATH:
#
#	examples/demo.sh [folder]
#
# The text is the Perl manual that Debian's perl-doc installs, or the files that
# DEMO_TEXT names. The exit status is 0 only if every check that it prints holds.
set -eu
# shellcheck source=/dev/null
. "$(dirname "$0")/show.sh"

run=${1:-demo-run}
text=${DEMO_TEXT:-$(ls /usr/share/perl/5.*.*/pod/*.pod 2>/dev/null || true)}
steps=${DEMO_STEPS:-500} # of the run's clock
batch=12
learners='ash birch cedar elm'

die() {
	echo "demo: $*" >&2
	exit 1
}

# A column of a learner's line in dl-stat, or of the totals' (*).
stat() { # name, column
	dl-stat --tsv "$run/tape" | awk -F '\t' -v name="$1" -v column="$2" '
		sub(/^# /, "") { for (i = 1; i <= NF; i++) at[$i] = i }
		$1 == name { print $at[column] }'
}

wait_for_clock() { # at least
	tries=0
	until [ "$(stat '*' clock)" -ge "$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 1000 ] || die "the clock does not reach $1"
		sleep 0.2
	done
}

start_syncer() {
	dl-sync serve --store "$run/store" --listen "unix:$run/sock" \
		--layout "$run/layout.tsv" --steps "$steps" \
		--tape "$run/tape" -o "$run/merged.safetensors" "$run/start" \
		2>>"$run/syncer.log" &
	syncer=$!
}

start_learner() { # name, slot
	# shellcheck disable=SC2086 # text is a list of files
	dl-learn --name "$1" --slot "$2" "unix:$run/sock" -- \
		dl-train run -q -b $batch --steps "$steps" \
		"$run/start" $text 2>>"$run/$1.log" &
	eval "pid_$1=\$!"
}

pid_of() { # learner
	eval "echo \$pid_$1"
}

# The most memory a process has had, in megabytes.
memory() { # pid
	awk '/^VmHWM/ { printf "%.1f", $2 * 1024 / 1e6 }' "/proc/$1/status"
}

loss() { # model
	# shellcheck disable=SC2086
	dl-train eval -q --config "$run/start/config.json" "$1" $text |
		awk -F '\t' '!/^#/ { printf "%.4f\n", $2 }'
}

seconds() {
	date +%s
}

[ -n "$text" ] || die 'no text: apt-get install perl-doc, or set DEMO_TEXT'
rm -rf "$run"
mkdir -p "$run"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 1' INT TERM

say 'A model and its plan: which tensors travel together'
dl-train init -L 4 -H 4 -d 128 -c 64 -s 1 "$run/start"
dl-frag plan -n 24 "$run/start" >"$run/layout.tsv"
head -n 6 "$run/layout.tsv"

say 'One syncer, four learners'
began=$(seconds)
start_syncer
tries=0
until [ -e "$run/sock" ]; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || die "no syncer; see $run/syncer.log"
	sleep 0.1
done
slot=0
for name in $learners; do
	start_learner "$name" $slot
	slot=$((slot + 1))
done
wait_for_clock $((steps / 5))
dl-stat "$run/tape"

say 'kill -9 birch: the others train on'
kill -9 "$(pid_of birch)"
wait "$(pid_of birch)" 2>/dev/null || true
for name in ash cedar elm; do
	eval "before_$name=\$(stat $name steps)"
done
wait_for_clock $(($(stat '*' clock) + steps / 10))
for name in ash cedar elm; do
	before=$(eval "echo \$before_$name")
	after=$(stat $name steps)
	check "$name went on: $before steps, then $after" \
		[ "$after" -gt "$before" ]
done
check 'birch is away' [ "$(stat birch state)" = away ]

say 'birch comes back, and takes the current model from the syncer'
start_learner birch 1
wait_for_clock $(($(stat '*' clock) + steps / 10))
check "birch trains again: $(stat birch steps) steps" \
	[ "$(stat birch state)" = training ]

say 'The syncer is restarted'
kill "$syncer"
check 'it left with status 0' wait "$syncer"
start_syncer
wait_for_clock $(($(stat '*' clock) + steps / 10))
dl-stat "$run/tape"
syncer_memory=$(memory "$syncer")
learner_memory=$(memory "$(pid_of ash)")

say 'To the end'
check 'the syncer wrote the model and left with status 0' wait "$syncer"
for name in $learners; do
	check "$name left with status 0" wait "$(pid_of "$name")"
done
took=$(($(seconds) - began))
dl-stat "$run/tape"
tokens=$(stat '*' tokens)

say 'As many tokens in one place, for comparison'
began=$(seconds)
# shellcheck disable=SC2086
dl-train run -q -t 2 -b $((4 * batch)) --tokens "$tokens" \
	-o "$run/alone.safetensors" "$run/start" $text
took_alone=$(($(seconds) - began))

say 'Held-out loss in nats a byte'
start_loss=$(loss "$run/start")
merged_loss=$(loss "$run/merged.safetensors")
alone_loss=$(loss "$run/alone.safetensors")
printf '%-34s %8s %12s\n' '' loss 'tokens/s' \
	'before' "$start_loss" '' \
	'four learners, two accidents' "$merged_loss" $((tokens / took)) \
	'one place, nothing happened' "$alone_loss" $((tokens / took_alone))
model=$(awk '!/^#/ { n += $4 } END { printf "%.1f", n * 4 / 1e6 }' \
	"$run/layout.tsv")
printf '\nmost memory: model %s MB, %s %s MB, dl-learn %s MB\n\n' "$model" \
	'dl-sync with the pushes it held' "$syncer_memory" "$learner_memory"
check 'the merged model learned' less "$merged_loss" "$start_loss / 2"
check 'and is within 15% of the undisturbed one' \
	less "$merged_loss" "1.15 * $alone_loss"

say 'It says'
dl-train sample -q -n 300 --config "$run/start/config.json" \
	-p 'The function ' "$run/merged.safetensors"
echo
finish
