#!/bin/sh
# A run on a cluster that Slurm manages: a job for the syncer, which submits an
# array of learners to a partition where jobs may be preempted at any time.
#
#	LEARNERS=8 PARTITION=spot sbatch -p cpu examples/slurm/run.sh \
#		FOLDER MODEL TRAINER ...
#
# FOLDER, which all nodes see, is where the run is kept, with the model at its
# end, model.safetensors. MODEL is what it begins with, TRAINER what each learner
# trains with. More for dl-sync serve is in SYNC (-H 24 --tokens 1G ...), for
# dl-learn in LEARN, and for the learners' sbatch in ARRAY (--gres=gpu:1 ...).
# Keys are made in ~/.dl-tools, and found there the next time. With the owner's,
# one looks at the run and ends it:
#
#	dl-join --key ~/.dl-tools/owner.key -o now "$(cat FOLDER/link)"
#	dl-sync end --key ~/.dl-tools/owner.key "$(cat FOLDER/link)"
#
# A learner that is preempted, or comes near its time limit, delivers its last
# work and is queued again; its name and its data stay. A syncer that is queued
# again goes on from its store, and has the learners look for it anew.
#SBATCH --job-name=dl-sync --requeue --open-mode=append
set -eu

keys=$HOME/.dl-tools

# The code of a learner that was asked to leave, and has.
left=85

make_keys() {
	umask 077
	mkdir -p "$keys"
	for name in syncer learner owner; do
		[ -e "$keys/$name.key" ] || dl-key gen -o "$keys/$name.key"
	done
	# One key for all learners, who are learner.0, learner.1 ...
	[ -e "$keys/authorized_learners" ] ||
		cat >"$keys/authorized_learners" <<-END
		$(dl-key pub "$keys/learner.key") learner max=10000
		$(dl-key pub "$keys/owner.key") owner observer end
		END
}

begin_learners() { # trainer
	if [ -e "$folder/learners" ]; then
		scontrol requeue "$(cat "$folder/learners")" || :
		return
	fi
	# shellcheck disable=SC2086 # options
	sbatch --parsable --job-name=dl-learn --array=0-$((${LEARNERS:-8} - 1)) \
		--signal=TERM@60 ${PARTITION:+-p "$PARTITION"} \
		--output="$folder/learner-%a.log" ${ARRAY:-} \
		"$0" learner "$folder" "$@" >"$folder/learners"
}

syncer() { # folder model trainer
	folder=$1 model=$2
	shift 2
	mkdir -p "$folder"
	make_keys
	port=$((20000 + SLURM_JOB_ID % 10000))
	# shellcheck disable=SC2086 # options
	dl-sync serve --store "$folder/store" --tape "$folder/tape" \
		--output "$folder/model.safetensors" --key "$keys/syncer.key" \
		--authorized "$keys/authorized_learners" \
		--listen tcp:0.0.0.0:$port ${SYNC:-} "$model" &
	work=$!
	trap 'kill -TERM $work' TERM
	echo "tcp:$(dl-key pub "$keys/syncer.key")@$(hostname):$port" \
		>"$folder/link"
	begin_learners "$@"
	finish
	if [ -e "$folder/model.safetensors" ]; then
		scancel --state=PENDING "$(cat "$folder/learners")"
		rm "$folder/learners"
	fi
	exit $code
}

# Waits for the work, whatever signals come.
finish() {
	code=0
	wait $work || code=$?
	while kill -0 $work 2>/dev/null; do
		code=0
		wait $work || code=$?
	done
}

# The batch script of one. It lives until it is queued again.
learner() {
	trap : TERM
	code=0
	srun --ntasks=1 sh "$0" step "$@" || code=$?
	[ $code -ne $left ] || scontrol requeue "$SLURM_JOB_ID"
	exit $code
}

# Slurm signals this shell, or all processes; only the learner is to heed it.
step() { # folder trainer
	folder=$1
	shift
	asked=
	# shellcheck disable=SC2086 # options
	dl-learn -n "learner.$SLURM_ARRAY_TASK_ID" --key "$keys/learner.key" \
		--state "$folder/state" ${LEARN:-} "$(cat "$folder/link")" -- \
		sh -c 'trap "" TERM; exec "$@"' sh "$@" &
	work=$!
	trap 'asked=yes; kill -TERM $work' TERM
	finish
	[ -z "$asked" ] || exit $left
	exit $code
}

case ${1-} in
learner | step) "$@" ;;
*)
	[ $# -ge 3 ] || {
		echo 'usage: sbatch run.sh FOLDER MODEL TRAINER ...' >&2
		exit 64
	}
	syncer "$@"
	;;
esac
