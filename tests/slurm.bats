#!/usr/bin/env bats
# examples/slurm on a real Slurm of one machine, with DL_SLURM=1 as root: it
# takes a minute.

load run/run.bash

setup() {
	[ -n "${DL_SLURM:-}" ] || skip "takes a minute: DL_SLURM=1"
	[ "$(id -u)" = 0 ] || skip "not root"
	PATH=$PATH:/usr/sbin
	for program in munged slurmctld slurmd; do
		command -v $program || skip "there is no $program"
	done
	run_setup
	begin_munge
	begin_slurm
}

teardown() {
	[ -z "${SLURM_CONF:-}" ] || scancel --full --user=root || true
	# What batch scripts left is Slurm's to end.
	[ -z "${pid[slurmd]:-}" ] || sleep 1
	run_teardown
	# A step has a session of its own, and outlives a slurmd that died.
	[ -z "${SLURM_CONF:-}" ] ||
		grep -lsz "^SLURM_CONF=$SLURM_CONF$" /proc/[0-9]*/environ |
		cut -d / -f 3 | xargs -r kill -9 || true
}

begin_munge() {
	mkdir -m 0700 munge
	dd if=/dev/urandom of=munge/key bs=32 count=1 2>/dev/null
	chmod 0400 munge/key
	chmod 0755 munge
	background munged munged --foreground --force --key-file=munge/key \
		--socket="$PWD/munge/socket" --pid-file=munge/pid \
		--seed-file=munge/seed --log-file="$PWD/munged.log"
	wait_for [ -S munge/socket ]
}

# Three CPUs, for the syncer and two learners, which an urgent job preempts.
begin_slurm() {
	local host port

	host=$(hostname -s)
	port=$((30000 + RANDOM % 10000))
	mkdir slurm
	cat >slurm/slurm.conf <<-END
	ClusterName=test
	SlurmctldHost=$host(127.0.0.1)
	SlurmctldPort=$port
	SlurmdPort=$((port + 1))
	SlurmUser=root
	AuthInfo=socket=$PWD/munge/socket
	StateSaveLocation=$PWD/slurm/state
	SlurmdSpoolDir=$PWD/slurm/spool
	SlurmctldPidFile=$PWD/slurm/slurmctld.pid
	SlurmdPidFile=$PWD/slurm/slurmd.pid
	ProctrackType=proctrack/pgid
	TaskPlugin=task/none
	SelectType=select/cons_tres
	SelectTypeParameters=CR_CPU
	SlurmdParameters=config_overrides
	SchedulerParameters=batch_sched_delay=1,sched_interval=2
	PreemptType=preempt/partition_prio
	PreemptMode=REQUEUE
	NodeName=$host NodeAddr=127.0.0.1 CPUs=3
	PartitionName=cpu Nodes=$host Default=YES PriorityTier=2 PreemptMode=OFF
	PartitionName=spot Nodes=$host PriorityTier=1 GraceTime=20
	END
	export SLURM_CONF=$PWD/slurm/slurm.conf
	background slurmctld slurmctld -D
	background slurmd slurmd -D -N "$host"
	wait_for idle
}

idle() {
	[ "$(sinfo -h -o %T)" = idle ]
}

# state JOB WANTED
state() {
	[ "$(squeue -h -j "$1" -o %T 2>/dev/null)" = "$2" ]
}

# steps: those of all learners, from the tape.
steps() {
	grep -c '"event":"step"' run/tape
}

# soon JOB: it runs; a job that was queued again would wait for two minutes.
soon() {
	state "$1" RUNNING && return
	scontrol update jobid="$1" StartTime=now 2>/dev/null || true
	false
}

# nobody: no job is left.
nobody() {
	[ -z "$(squeue -h)" ]
}

# longest_gap: in which the run made no step, to look at.
longest_gap() {
	sed -n 's/.*"event":"step",.*"now":\([0-9]*\).*/\1/p' run/tape | awk '
		NR > 1 && $1 - last > most { most = $1 - last }
		{ last = $1 }
		END { printf "# no step for %.2f s at most\n", most / 1e9 }' >&3
}

@test "submit, preempt, queue again, finish" {
	export HOME=$PWD LEARNERS=2 PARTITION=spot SYNC='-H 6' \
		LEARN='--heartbeat 300ms'
	sbatch --output=syncer.log "$abs_top_srcdir/examples/slurm/run.sh" \
		run m/model.safetensors dl-train run -q -b 2 \
		--step-time 20ms "$PWD/m" "$PWD/text"
	wait_for [ -s run/learners ]
	array=$(cat run/learners)
	for learner in 0 1; do
		wait_for has 3 "\"push\".*\"learner\":\"learner.$learner\"" \
			run/tape
	done
	# Somebody more important needs a CPU for a while.
	sbatch --job-name=urgent --output=urgent.log --wrap='sleep 4'
	wait_for has 1 '"leave".*"learner.[01]"' run/tape
	gone=$(sed -n 's/.*"leave".*"learner.\([01]\)".*/\1/p' run/tape)
	wait_for has 1 'delivers its last work' "run/learner-$gone.log"
	[ "$(grep -c 'not delivered' "run/learner-$gone.log")" -eq 0 ]
	# The other trains on meanwhile.
	before=$(steps)
	wait_for state "${array}_$gone" PENDING
	[ "$(steps)" -gt "$before" ]
	wait_for soon "${array}_$gone"
	# It comes back under its name, and works.
	pushes=$(grep -c "\"push\".*\"learner.$gone\"" run/tape)
	wait_for has $((pushes + 3)) "\"push\".*\"learner.$gone\"" run/tape
	grep '"leave".*"learner.'"$gone" run/tape
	dl-sync end --key .dl-tools/owner.key "$(cat run/link)"
	wait_for nobody
	dl-frag check run/model.safetensors
	longest_gap
	[ ! -e run/learners ]
}
