#!/bin/sh
# What the death of one process costs. Four processes train data-parallel, as
# one MPI job that exchanges gradients at every step; then four train as three
# learners of a run, one of which is an MPI job of two. Runs in a moment, with
# the programs and mpirun on PATH:
#
#	examples/mpi/run.sh [folder]
#
# On a cluster mpirun places ranks on machines, by its --hostfile or as the
# scheduler that it is called under says; MODEL and DATA must be on each. Only
# rank 0 talks to dl-learn, on whose machine it is. The exit status is 0 only if
# every check that this prints holds.
set -eu
# shellcheck source=/dev/null
. "$(dirname "$0")/../show.sh"

mkdir -p "${1:-mpi-run}"
cd "${1:-mpi-run}"

# Here it is one machine, perhaps a container's root, with few CPUs to share.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_mpi_yield_when_idle=1
# The same to Open MPI from 5 on.
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
export PRTE_MCA_hwloc_default_binding_policy=none

fails() { # command...
	! "$@"
}

ranks() { # pid of what started their job, MPICH's with a proxy between
	# shellcheck disable=SC2013 # words
	for p in $(cat "/proc/$1"/task/*/children); do
		if [ "$(cat "/proc/$p/comm")" = dl-train ]; then
			echo "$p"
		else
			ranks "$p"
		fi
	done
}

last() { # word...
	shift $(($# - 1))
	echo "$1"
}

stat() { # name, column
	dl-stat --tsv tape | awk -F '\t' -v name="$1" -v column="$2" '
		sub(/^# /, "") { for (i = 1; i <= NF; i++) at[$i] = i }
		$1 == name { print $at[column] }'
}

steps_of() { # name, at least
	[ "$(stat "$1" steps)" -ge "$2" ]
}

went_on() { # name, its steps before
	after=$(stat "$1" steps)
	check "$1 went on: $2 steps, then $after" [ "$after" -gt "$2" ]
}

loss() { # model
	dl-train eval -q --config start/config.json "$1" text |
		awk -F '\t' '!/^#/ { print $2 }'
}

pids=
trap 'kill $pids 2>/dev/null || true' EXIT
trap 'exit 1' INT TERM

say '1. A model and a text'
seq 10000 | sed 's/.*/& bottles of beer on the wall/' >text
dl-train init -L 1 -H 2 -d 16 -c 16 -s 1 start

say '2. Four processes in lock-step, of which one is killed'
mpirun -n 4 dl-train run -b 8 --step-time 10ms --steps 100000 \
	-o alone.safetensors start text 2>alone.log &
job=$!
pids=$job
wait_for finds 'step 1 of' alone.log
# shellcheck disable=SC2046 # a list
kill -9 "$(last $(ranks $job))"
check 'the job fails' fails wait $job
check 'and leaves nothing' [ ! -e alone.safetensors ]

say '3. Four processes, three learners'
dl-sync serve --store store --listen unix:sock -H 12 --fragments 4 \
	--tape tape -o final.safetensors start 2>syncer.log &
syncer=$!
pids=$syncer
wait_for finds 'listens at' syncer.log
for name in ash birch; do
	dl-learn -n $name unix:sock -- dl-train run -q -b 2 \
		--step-time 10ms start text 2>$name.log &
	eval "$name=\$!"
	pids="$pids $!"
done
dl-learn -n cedar unix:sock -- mpirun -n 2 dl-train run -q -b 4 \
	--step-time 10ms start text 2>cedar.log &
cedar=$!
pids="$pids $cedar"
for name in ash birch cedar; do
	wait_for finds "\"push\".*\"$name\"" tape
done

say "4. One of cedar's is killed"
before_ash=$(stat ash steps) before_birch=$(stat birch steps)
# shellcheck disable=SC2046
kill -9 "$(last $(ranks $cedar))"
wait_for finds 'trainer: ' cedar.log
grep 'trainer: ' cedar.log
before_cedar=$(stat cedar steps)
check 'cedar has started both again' \
	wait_for steps_of cedar $((before_cedar + 20))
went_on ash "$before_ash"
went_on birch "$before_birch"

say '5. To the end'
dl-sync end unix:sock
check 'the syncer wrote the model and left with status 0' wait $syncer
for name in ash birch cedar; do
	eval "check '$name left with status 0' wait \$$name"
done
dl-stat -t tape | cut -f 1-6
before=$(loss start) after=$(loss final.safetensors)
check "the loss fell from $before to $after" less "$after" "$before"
finish
