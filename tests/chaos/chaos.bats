#!/usr/bin/env bats
# A short run under chaos: see README.md. CHAOS_SEED makes another.

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	chaos=$abs_top_srcdir/tests/chaos
	shim=$abs_top_builddir/tests/chaos/shim.so
	export TMPDIR=$BATS_TEST_TMPDIR PYTHONDONTWRITEBYTECODE=1
}

@test "a run under every kind of fault keeps what it must" {
	run python3 "$chaos/chaos.py" soak --shim "$shim" -v \
		--seed "${CHAOS_SEED:-1310}" --seconds 12 --learners 4 --up 4
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "the same seed makes the same schedule, another another" {
	schedule() {
		python3 "$chaos/chaos.py" schedule --seed "$1" --seconds 600
	}
	schedule 1 >first
	schedule 1 | cmp - first
	[ "$(schedule 2)" != "$(schedule 1)" ]
	for kind in kill leave freeze cut silence clock restart slow full \
		rotate lose absent; do
		grep -q "$kind" first
	done
}

# faults SED-COMMAND: what is said of a tape that it has changed.
faults() {
	sed "$1" good >bad
	PYTHONPATH=$chaos python3 -c \
		'import tape; print(*tape.check(tape.read("bad")), sep="\n")'
}

# wrong TEXT SED-COMMAND: that is said of it.
wrong() {
	faults "$2" | grep -e "$1"
}

@test "a tape that shows what must not be is found out" {
	head='{"format":"dl-tape 1","saved":null}'
	step='{"event":"step","learner":"a","instance":1,"tokens":9'
	push='{"event":"push","learner":"a","instance":1,"fragment":0'
	cat >good <<-END
		$head
		$step,"clock":3,"steps":3}
		$push,"seq":1,"step":3,"steps":3,"tokens":9,"base":"1.0","norm":1}
		$push,"seq":1,"step":3,"steps":3,"tokens":9,"base":"1.0","norm":1}
		{"event":"merged","fragment":0,"version":"1.1"}
		{"format":"dl-tape 1","saved":{"epoch":1,"clock":3}}
		{"event":"merged","fragment":0,"version":"2.2"}
	END
	[ -z "$(faults '')" ]
	wrong 'fragment 0: 2.3 in epoch 2 after number 1' 's/"2.2"/"2.3"/'
	wrong 'fragment 0: 1.2 in epoch 2' 's/"2.2"/"1.2"/'
	wrong 'epoch 0 was saved after 1' '6s/"epoch":1/"epoch":0/'
	wrong 'clock 2 was saved after 3' \
		'$s/$/\n{"format":"dl-tape 1","saved":{"epoch":2,"clock":2}}/'
	wrong 'pushed 6 steps of fragment 0 and made 3' '3s/"seq":1/"seq":2/'
	wrong 'came again with another norm' '3s/"norm":1/"norm":2/'
	wrong '(2, 3, 9) after (3, 3, 9)' '2{p;s/"clock":3/"clock":2/}'
}
