#!/usr/bin/env bats
# dl-train as an MPI job: several processes that are one learner.

load ../run/run.bash

setup() {
	command -v mpirun || skip "there is no mpirun"
	[ -e "$abs_top_builddir/dl-mpi.so" ] || skip "built without MPI"
	# Open MPI as root, and on CPUs that it has not for itself.
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		OMPI_MCA_rmaps_base_oversubscribe=1 \
		OMPI_MCA_hwloc_base_binding_policy=none \
		OMPI_MCA_mpi_yield_when_idle=1 \
		PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
		PRTE_MCA_hwloc_default_binding_policy=none
	# What MPI keeps to its end is not ours.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	run_setup
	run=(dl-train run -q -b 5 --warmup 10 -s 5)
}

teardown() {
	[ -z "${link:-}" ] || run_teardown
}

# ranks PID: those of the job that it has started, MPICH's with a proxy between.
ranks() {
	local p
	for p in $(cat "/proc/$1"/task/*/children); do
		if [ "$(cat "/proc/$p/comm")" = dl-train ]; then
			echo "$p"
		else
			ranks "$p"
		fi
	done
}

gone() {
	local p

	for p; do
		! kill -0 "$p" 2>/dev/null || return 1
	done
}

@test "ranks have the loss of one process, and the bits of as many threads" {
	"${run[@]}" --steps 20 -o one m text
	for n in 2 3; do
		mpirun -n $n "${run[@]}" --steps 20 -o ranks$n --save state$n \
			m text
		"${run[@]}" --steps 20 -o threads -t $n --save state m text
		cmp ranks$n/model.safetensors threads/model.safetensors
		cmp state$n state
		awk -v a="$(held_out ranks$n)" -v b="$(held_out one)" \
			'BEGIN { d = a - b; exit !(d * d < 1e-6) }'
	done
}

@test "ranks evaluate, and go on where they were" {
	"${run[@]}" -t 2 --steps 20 -o threads m text
	mpirun -n 2 dl-train run -b 5 --warmup 10 -s 5 --steps 20 --eval 10 \
		-o ranks m text 2>said
	cat said
	loss=$(sed -n 's/.*step 20: held-out loss \([0-9.]*\).*/\1/p' said)
	[ "$loss" = "$(printf %.4f "$(held_out threads)")" ]
	[ "$(grep -c 'held-out' said)" -eq 2 ]
	mpirun -n 2 "${run[@]}" --steps 10 --save state m text
	mpirun -n 2 "${run[@]}" --steps 20 --resume state -o more m text
	# The cosine of the first ten was another, that of threads the same.
	"${run[@]}" -t 2 --steps 10 --save same m text
	cmp state same
	"${run[@]}" -t 2 --steps 20 --resume same -o again m text
	cmp more/model.safetensors again/model.safetensors
}

# play NAME COMMAND...: all orders, in the folder NAME.
play() {
	mkdir "$1"
	cd "$1"
	shift
	truncate -s 1M e
	DL_LAYOUT=$PWD/../layout.tsv DL_SLOT=1 DL_SEED=2 \
		"$abs_top_srcdir/tests/train/orders.py" ../orders "$@" >said
	cd ..
}

@test "all ranks do what rank 0 is told" {
	cat >orders <<-END
		load ../m/model.safetensors
		go
		go
		send 0 f0
		send 1 f1
		send 2 f2
		go
		apply 0 f0 set
		apply 1 f1 blend 0.25
		apply 2 f2 add
		go
		prepare e
		go
		export e
		save s
		apply 0 f1 set
		clock 9
		go
		clock 40 fresh
		go
		restore s
		clock 60
		go
		import e
		go
		go
		save last
		stop
	END
	train=(dl-train run -q -b 5 --steps 100 ../m ../text)
	play threads "${train[@]}" -t 2
	# The second on another machine, as far as it can see.
	play ranks mpirun -n 1 "${train[@]}" : -n 1 env -u DL_TRAINER \
		-u DL_LAYOUT -u DL_SLOT -u DL_SEED "${train[@]}"
	cat ranks/said
	cmp ranks/said threads/said
	for file in f0 f1 f2 e s last; do
		cmp ranks/$file threads/$file
	done
	[ "$(grep -c '^step 80 ' ranks/said)" -eq 10 ]
	[ "$(grep -c '^error' ranks/said)" -eq 1 ]
}

@test "what is wrong with one rank is said once" {
	run mpirun -n 1 "${run[@]}" --steps 5 -o x m text : \
		-n 1 "${run[@]}" --steps 5 -o x m nothing
	[ "$status" -eq 66 ]
	[ "$(grep -c '^dl-train: rank 1: nothing: ' <<<"$output")" -eq 1 ]
	[ "$(grep -c '^dl-train: ' <<<"$output")" -eq 1 ]
	run mpirun -n 2 "${run[@]}" --steps 5 -o x m nothing
	[ "$status" -eq 66 ]
	[ "$(grep -c '^dl-train: ' <<<"$output")" -eq 1 ]
	run mpirun -n 1 "${run[@]}" --steps 5 -o x m text : \
		-n 1 "${run[@]}" --steps 5 -o x m text text
	[ "$status" -eq 65 ]
	[[ "$output" == *"rank 1: not the model or data of rank 0"* ]]
	run mpirun -n 2 "${run[@]}" --steps 5 -o nowhere/x.safetensors m text
	[ "$status" -eq 73 ]
	[ ! -e x ]
}

# job: one in the background, with what it says in job.log.
job() {
	rm -f job.log
	background job mpirun -n 2 dl-train run -b 2 --steps 1000000 \
		--save state m text
	wait_for has 1 'step 1 of' job.log
	rank=($(ranks "${pid[job]}"))
	[ ${#rank[@]} -eq 2 ]
}

@test "a rank that dies takes the job along" {
	job
	kill -9 "${rank[1]}"
	if mpirun --version | grep -q "Open MPI"; then
		ends job 137
	elif ends job; then
		false
	fi
	wait_for gone "${rank[@]}"
	[ ! -e state ]
}

@test "ranks whose mpirun dies do not stay" {
	job
	kill_hard job
	wait_for gone "${rank[@]}"
}

@test "a signal to the job ends it after a step, and all is kept" {
	job
	kill -TERM "${pid[job]}"
	wait_for gone "${pid[job]}" "${rank[@]}"
	"${run[@]}" --steps 1 --resume state -o x m text
}

@test "two ranks are one learner, which lives when one of them is killed" {
	syncer
	learner ann
	background ben dl-learn -n ben --scratch "$scratch" --heartbeat 300ms \
		"$link" -- mpirun -n 2 dl-train run -q -b 2 --step-time 10ms \
		m text
	wait_for pushed ben 3
	rank=($(ranks "${pid[ben]}"))
	kill -9 "${rank[1]}"
	wait_for has 1 'trainer: exited with status' ben.log
	wait_for gone "${rank[@]}"
	pushes=$(grep -c '"push".*"learner":"ben"' tape)
	wait_for pushed ben $((pushes + 3))
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
}

@test "learners that MPI starts are learners of their own" {
	syncer --steps 60
	background both mpirun -n 2 sh -c 'exec dl-learn \
		-n "learner.${OMPI_COMM_WORLD_RANK-$PMI_RANK}" --scratch "$0" \
		--heartbeat 300ms "$1" -- dl-train run -q -b 2 \
		--step-time 10ms m text' "$scratch" "$link"
	ends both
	ends syncer
	pushed learner.0
	pushed learner.1
}

@test "examples/mpi/run.sh" {
	"$abs_top_srcdir/examples/mpi/run.sh" "$BATS_TEST_TMPDIR/a run"
}
