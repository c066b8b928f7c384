#!/bin/sh
# A run without any daemon: two learners and a syncer that meet in a folder. The
# syncer is a job that cron starts, does what there is to do, and exits. Runs in
# a moment, with the programs on PATH:
#
#	examples/cron-spool.sh [folder]
#
# Here cron is a loop that starts a pass twice a second. In earnest the folder is
# on a network file system that all machines see, each learner runs on a machine
# of its own, and one line of a crontab is the syncer:
#
#	* * * * * dl-sync run -q -o /data/trained.safetensors /data/spool
set -eu
# shellcheck source=/dev/null
. "$(dirname "$0")/show.sh"

mkdir -p "${1:-cron-run}"
cd "${1:-cron-run}"

# The run's settings are given to every pass. 75 says that there was nothing to
# merge yet: try again later.
pass() {
	code=0
	dl-sync run -H 6 --steps 240 -o trained.safetensors "$@" || code=$?
	[ "$code" -eq 0 ] || [ "$code" -eq 75 ]
}

key() { # word: its value in the spool
	sed -n "s/^# $1 //p" spool/global/latest
}

loss() { # model
	dl-train eval -q --config model/config.json "$1" text |
		awk '!/^#/ { print $2 }'
}

is_less() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'
}

say '1. A model, a text, and the first pass, which makes the spool'
seq 400 | awk '{ print $1 " bottles; one falls, and " $1 * $1 % 97 " are left." }' \
	>text
dl-train init -q -L 1 -H 2 -d 16 -c 16 -s 3 model
pass --run cron --fragments 3 spool model/model.safetensors
ls spool

say '2. Two learners, each with a trainer of its own'
learners=
for name in ann ben; do
	dl-learn -q -n "$name" --poll 100ms dir:spool -- \
		dl-train run -q -b 2 --step-time 10ms model text &
	learners="$learners $!"
done

say '3. cron: a pass now and then, until the run is over'
passes=0
while [ "$(key state)" != "done" ] && [ $passes -lt 240 ]; do
	pass spool
	passes=$((passes + 1))
	sleep 0.5
done
# shellcheck disable=SC2086 # a list
wait $learners

say '4. What came of it'
grep -v '^#' spool/global/latest | cut -f 1-3
before=$(loss model/model.safetensors) after=$(loss trained.safetensors)
check "the loss fell from $before to $after" is_less "$after" "$before"
check "every learner's pushes were settled" awk \
	'/^[0-9]/ && $3 < $2 { n++ } END { exit n > 0 }' spool/taken/*
dl-stat -t spool/store/tape | cut -f 1-6
finish
