#!/usr/bin/env bats
# Newcomers: what they get of donors of every kind, which a second
# implementation plays, and what of the syncer.

load run.bash

setup() {
	python3 -c 'import cryptography' 2>/dev/null ||
		skip "python3-cryptography is not installed"
	run_setup
	dl-key gen -o new.key
	dl-train run -q -b 2 --steps 20 --save warm.state -o warm m text
	# What is not data of the tensors: 8 bytes and a header.
	head=$((8 + $(od -An -tu8 -N8 warm.state)))
	whole=$(stat -c %s warm.state)
	syncer
	wait_for [ -S s ]
	learner ann
	wait_for pushed ann
}

teardown() {
	run_teardown
}

# stage NEWCOMER=KIND,...: a door that names donors of these kinds.
stage() {
	background stage python3 "$abs_top_srcdir/tests/protocol/stage.py" \
		door s warm.state "$@"
	wait_for has 1 "door open" stage.log
}

# newcomer NAME [OPTION...]: a learner that comes through the door, whose trainer
# is listened to.
newcomer() {
	local name=$1
	shift
	SAID=$name.lines background "$name" dl-learn -n "$name" -v --scratch "$scratch" \
		--key new.key "$@" "unix:$PWD/door" -- \
		python3 "$abs_top_srcdir/tests/run/spy.py" \
		dl-train run -q -b 2 --step-time 10ms m text
}

# fetched DONOR: bytes that it was asked for.
fetched() {
	awk -v name="$1" '$1 == name && $2 == "fetch" { n += $4 }
		END { print n + 0 }' stage.log
}

# is_warm NAME: its trainer went on from a peer's state, with its moments.
is_warm() {
	wait_for [ -e "$1.lines" ]
	wait_for has 1 "^go" "$1.lines"
	head -n 4 "$1.lines"
	not grep "^load\|fresh" "$1.lines"
	[[ $(sed -n 2p "$1.lines") == "import "*state.safetensors ]]
	[[ $(sed -n 3p "$1.lines") =~ ^"clock "[0-9]+$ ]]
}

# is_cold NAME: it began with the syncer's values.
is_cold() {
	wait_for [ -e "$1.lines" ]
	wait_for has 1 "^go" "$1.lines"
	head -n 4 "$1.lines"
	grep -q "^load" "$1.lines"
	grep -q "^clock [0-9]* fresh" "$1.lines"
}

@test "a newcomer begins with a donor's state, or the syncer's values" {
	stage warm=good half=dies,good cold=
	newcomer warm
	newcomer half
	newcomer cold
	is_warm warm
	[ "$(fetched warm-0good)" -eq "$whole" ]
	wait_for has 1 "warm-0good bye" stage.log
	# Links that are no sessions were not even tried.
	[ ! -e hacked ]
	not grep mallory warm.log

	# Of one that dies half-way, what was whole is not fetched again.
	is_warm half
	grep -q "half-0dies: " half.log
	[ "$(fetched half-0dies)" -gt $((whole / 2)) ]
	[ $(($(fetched half-1good) - head)) -lt $((whole * 2 / 3)) ]

	is_cold cold
	for name in warm half cold; do
		wait_for pushed "$name" 3
	done
	# What was taken is not kept.
	[ -z "$(find "$scratch" -name 'state*')" ]
	dl-sync end "$link"
	for name in warm half cold syncer; do
		ends "$name"
	done
	is_better
}

@test "donors that lie cost the attempt" {
	stage new=layout,huge,far,old,nan,busy,size,hash,good cold=layout,far
	newcomer new
	newcomer cold
	is_warm new
	cat new.log
	grep -q 'new-0layout: tensor "lm_head.weight" is missing' new.log
	grep -q "new-1huge: a header of 9223372036854775808 bytes" new.log
	grep -q "new-2far: .*no scratch folder with .* of room" new.log
	grep -q "new-3old: a state of clock" new.log
	grep -q "new-4nan: tensor .* holds infinity or no number" new.log
	grep -q "new-5busy: serves as many as it will" new.log
	grep -q "new-6size: .* bytes at .* come in place of" new.log
	grep -q "new-7hash: .*not what its hash names" new.log
	wait_for has 1 "new-8good bye" stage.log
	is_cold cold
	grep -q "begins with the syncer's values" cold.log
	wait_for pushed new
	wait_for pushed cold
}

@test "who cannot take a state, or shall not, begins with the syncer's values" {
	stage no=good not=good mute=mute
	touch refuse-import
	newcomer no
	newcomer not --join syncer
	newcomer mute
	is_cold no
	grep -q "bad state: begins with the syncer's values" no.log
	[ "$(grep -c "^ready" no.lines)" -eq 1 ] # it lives on
	wait_for pushed no 3
	is_cold not
	not grep "^not asks" stage.log
	wait_for has 1 "mute-0mute hello" stage.log
	grep -q "asks mute-0mute for its state" mute.log
	kill -TERM "${pid[mute]}"
	ends mute
	[ ! -e mute.lines ]
}

@test "dl-join takes a state, which a trainer goes on from" {
	stage =far,dies,good
	# One that was killed before has left what it had.
	true &
	killed=$!
	wait "$killed"
	mkdir state
	touch "state/state.safetensors.tmp.$killed.0" "state/my.tmp.$killed.0" \
		"state/join.json.tmp.$$.0"
	dl-join --state state --key new.key "unix:$PWD/door"
	ls state
	cat state/join.json
	[ "$(ls state | wc -l)" -eq 5 ]
	[ ! -e "state/state.safetensors.tmp.$killed.0" ]
	dl-frag check state/state.safetensors
	cmp <(grep -v "^#" layout.tsv) <(grep -v "^#" state/layout.tsv)
	grep -q '"donor":"-2good","versions":\["1\.[0-9]*","1' state/join.json
	dl-train run -q -b 2 --resume state/state.safetensors --steps 25 \
		-o there m text

	# Nobody gives one: nothing is left behind, nor made.
	kill_hard stage
	rm door stage.log
	stage =
	run dl-join --state none --key new.key "unix:$PWD/door"
	[ "$status" -eq 75 ]
	[[ "$output" == *"no learner of run "*" gives its state" ]]
	[ ! -e none ]
	run dl-join --state none --key new.key unix:/nowhere
	[ "$status" -eq 69 ]
	run dl-join --state none unix:s
	[ "$status" -eq 64 ]
}

# donor NAME [OPTION...]: a learner that gives its state.
donor() {
	dl-key gen -o "$1.key"
	learner "$1" -v --key "$1.key" --join syncer --serve tcp:127.0.0.1:0 \
		"${@:2}"
	wait_for pushed "$1"
}

@test "real donors: newcomers spread, lose one, and the syncer" {
	donor ben --serve-rate 60K
	donor cat --serve-rate 60K
	ln -s s door
	newcomer new1
	newcomer new2
	is_warm new1
	is_warm new2
	grep -q "has the state of ben" new1.log new2.log
	grep -q "has the state of cat" new1.log new2.log
	wait_for pushed new1
	wait_for pushed new2

	newcomer half
	wait_for has 1 "bytes are whole" half.log
	first=$(sed -n 's/.*takes the state of \([a-z]*\):.*/\1/p' half.log)
	kill_hard "$first"
	is_warm half
	last=$(sed -n 's/.* \([0-9]*\) of them from .*/\1/p' half.log)
	[ "$last" -lt $((whole - whole / 4)) ]
	wait_for pushed half

	newcomer late
	wait_for has 1 "bytes are whole" late.log
	kill_hard syncer
	wait_for has 1 "trying again" late.log
	grep -q "has the state of" late.log
	syncer
	is_warm late
	wait_for pushed late
}

@test "a peer's state goes before one's own save, and that is said" {
	donor ben
	ln -s s door
	newcomer new --state saves --save-every 5
	wait_for has 2 "saved at clock" new.log
	kill_hard new
	rm new.lines
	newcomer new --state saves --save-every 5
	is_warm new
	wait_for has 1 "has a save of .*: a peer's state is newer" new.log
	wait_for pushed new 2
}

@test "two with one key, a donor that leaves, a syncer that hangs up" {
	donor ben --serve-rate 40K
	background one dl-join --state one --key new.key "$link"
	wait_for has 1 "takes the state of ben" one.log
	dl-join --state two --key new.key "$link"
	ends one 75
	grep -q "ben: another with this key has come" one.log
	tail -n 1 one.log | grep "no learner of run .* gives its state"
	[ ! -e one ]
	grep -q "somebody joins at" syncer.log

	background one dl-join --state one --key new.key "$link"
	wait_for has 2 "takes the state of ben" one.log
	kill -TERM "${pid[ben]}"
	ends ben
	ends one 75
	tail -n 1 one.log | grep "no learner of run .* gives its state"

	background closer python3 -c 'import socket
s = socket.socket(socket.AF_UNIX)
s.bind("gone")
s.listen()
s.accept()[0].close()'
	wait_for [ -S gone ]
	run dl-join --state one --key new.key unix:gone
	[ "$status" -eq 69 ]
	[[ "$output" == "dl-join: unix:gone: "* ]]
}

@test "who has asked how to join hears that the run is over" {
	run dl-join --state none --key new.key "$link"
	dl-sync end -q "$link"
	ends ann
	background late dl-learn -n late --scratch "$scratch" "$link" -- \
		dl-train run -q -b 2 m text
	ends late
	ends syncer
}
