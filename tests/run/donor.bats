#!/usr/bin/env bats
# Learners that give their state to those who join. The joiner is Python's,
# written from dl-protocol(7).

load run.bash

setup() {
	command -v python3 >/dev/null || skip "python3 is not installed"
	python3 -c 'import cryptography' 2>/dev/null ||
		skip "python3-cryptography is not installed"
	run_setup
}

teardown() {
	run_teardown
}

# run_of NAME...: a syncer that those and joe may come to.
run_of() {
	for name in syncer joe jim "$@"; do
		dl-key gen -o "$name.key"
		echo "$(dl-key pub "$name.key") $name"
	done >authorized
	link=tcp:127.0.0.1:0
	syncer --key syncer.key --authorized authorized
	wait_for has 1 "listens at tcp" syncer.log
	link=tcp:$(dl-key pub syncer.key)@$(sed -n \
		's/.*listens at tcp:\(.*@\)*//p' syncer.log)
}

# donor NAME [OPTION...]: a learner that has trained and serves its state.
donor() {
	learner "$1" -v --key "$1.key" --serve tcp:127.0.0.1:0 "${@:2}"
	wait_for pushed "$1" 2
}

# joiner NAME [OPTION...]: its words in NAME.log, the state in NAME.state.
joiner() {
	python3 "$abs_top_srcdir/tests/protocol/joiner.py" -n "$1" \
		--key "$1.key" "${@:2}" "$link" "$1.state"
}

joins() {
	background "$1" joiner "$@"
}

# trains NAME: it pushes on.
trains() {
	wait_for pushed "$1" $(($(grep -c "\"push\".*\"learner\":\"$1\"" tape) + 2))
}

# size: of the state that joe was told of.
size() {
	sed -n 's/^from.* bytes \([0-9]*\) .*/\1/p' joe.log | tail -n 1
}

@test "a learner gives its state while its trainer runs on" {
	run_of ann
	donor ann
	joiner joe >joe.log
	grep -q '^donors ann$' joe.log
	grep -q '^whole$' joe.log
	[ "$(stat -c %s joe.state)" -eq "$(size)" ]
	grep -q "joe at tcp:127.0.0.1:.* has taken 143 kB in" ann.log
	# What it is: a training state, with which training goes on.
	clock=$(sed -n 's/^from ann clock \([0-9]*\) .*/\1/p' joe.log)
	dl-train run -q -b 2 --resume joe.state --steps $((clock + 1)) \
		-o more m text
	trains ann
	# Its model is of the versions that it says.
	grep -Eq ' versions 1\.[0-9]+ 1\.[0-9]+ 1\.[0-9]+$' joe.log
	# The same again comes from the same file, in place.
	joiner joe >joe.log
	grep -q '^whole$' joe.log
	not grep -q "starting it again" ann.log
}

@test "joiners spread over donors, and share what one has" {
	run_of ann ben
	donor ann
	donor ben
	joiner joe >joe.log
	joiner jim >jim.log
	[ "$(sed -n 's/^from \([a-z]*\) .*/\1/p' joe.log jim.log | sort)" = \
		"ann
ben" ]
	# Both at one: one export does.
	kill_hard ben
	wait_for has 1 "ben is gone" syncer.log
	exports=$(grep -c "learn: state of clock" ann.log)
	clock=$(sed -n 's/.*learn: state of clock \([0-9]*\):.*/\1/p' ann.log |
		tail -n 1)
	joins jim --clock "$clock" --pause 0.05
	joins joe --clock "$clock" --pause 0.05
	ends jim
	ends joe
	[ "$(grep -c "learn: state of clock" ann.log)" -eq "$exports" ]
	cmp joe.state jim.state
}

@test "only who was named by the syncer is let in" {
	run_of ann
	donor ann
	joiner joe >joe.log
	wait_for has 1 "has taken" ann.log
	dl-key gen -o eve.key
	port=$(ss -Hltnp 2>/dev/null | sed -n "s/.*:\([0-9]*\) .*pid=${pid[ann]},.*/\1/p")
	[ -n "$port" ] || skip "ss does not tell where a process listens"
	donor=tcp:$(dl-key pub ann.key)@127.0.0.1:$port
	not joiner eve --from "$donor" >eve.log
	grep -q "error 77: the syncer has not named this key" eve.log
	not joiner jim --from "$donor" >jim.log
	grep -q "error 77" jim.log
	joiner joe --from "$donor" >joe.log
	# Nor is it a syncer.
	not dl-join --key joe.key -o x.safetensors "$donor" 2>join.log
	grep -q "this is a learner" join.log
	trains ann
}

@test "a donor limits what serving costs it" {
	run_of ann
	donor ann --serve-max 1 --serve-rate 100k
	joins jim --lie idle
	wait_for has 1 "^from ann" jim.log
	not joiner joe >joe.log
	grep -q "error 75: serves as many as it will" joe.log
	kill_hard jim
	wait_for has 1 "jim .*is gone" ann.log
	before=$(date +%s%N)
	joiner joe >joe.log
	# 143 kB at 100 kB a second, of which a twentieth may go at once.
	[ $(($(date +%s%N) - before)) -ge 1000000000 ]
	trains ann
}

@test "when a donor dies in the middle another goes on" {
	run_of ann ben
	donor ann
	donor ben
	joins joe --pause 1
	wait_for has 1 "^from" joe.log
	first=$(sed -n 's/^from \([a-z]*\) .*/\1/p' joe.log)
	kill_hard "$first"
	ends joe
	[ "$(grep -c ^from joe.log)" -eq 2 ]
	grep -q "^lost $first" joe.log
	grep -q '^whole$' joe.log
}

@test "a trainer that cannot export trains on, and another is asked" {
	run_of ann
	background ann dl-learn -v -n ann --scratch "$scratch" --key ann.key \
		--serve tcp:127.0.0.1:0 "$link" -- \
		python3 "$abs_top_srcdir/tests/run/refuser.py" prepare,export \
		dl-train run -q -b 2 --step-time 10ms m text
	wait_for pushed ann 2
	not joiner joe >joe.log
	grep -q "error 75: cannot serve its state" joe.log
	grep -q "cannot serve its state: trainer: not today" ann.log
	trains ann
	not grep -q "starting it again" ann.log
	# It offers no more.
	kill "${pid[syncer]}"
	ends syncer
	background syncer dl-sync serve --store store --key syncer.key \
		--authorized authorized --tape tape \
		--listen "tcp:127.0.0.1:${link##*:}"
	wait_for has 2 "ann is here" syncer.log
	not joiner joe >joe.log
	grep -q '^donors$' joe.log
}

@test "who does not know what it may ask for costs only itself" {
	dl-train init -q -L 2 -H 2 -d 192 -c 16 -s 3 -f m
	dl-frag plan -n 3 m/model.safetensors >layout.tsv
	run_of ann
	donor ann
	resident() { awk '/^VmRSS/ { print $2 }' "/proc/${pid[ann]}/status"; }
	joiner joe --piece 4194304 >joe.log
	before=$(resident)
	joins jim --lie mute
	wait_for has 1 "^from ann" jim.log
	for lie in beyond many; do
		not joiner joe --clock 0 --lie "$lie" >"$lie.log"
	done
	grep -q "joe .*is gone: fetches 11 bytes at" ann.log
	grep -q "joe .*is gone: more than 8 fetches at once" ann.log
	[ $(($(resident) - before)) -lt "$(room 20000)" ]
	# Nor does one who reads nothing keep others from a newer state.
	joiner joe --piece 4194304 >joe.log
	grep -q "jim .*is gone: takes nothing" ann.log
	ends jim 1
	trains ann
}
