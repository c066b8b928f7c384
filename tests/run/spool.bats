#!/usr/bin/env bats
# dl-sync run: passes over a spool, of pushes made by hand (spool_push) and of
# real learners.

load run.bash

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	tools=$abs_top_builddir/tests
	"$tools/tensor/make_model" 1 model.safetensors llama
	dl-frag plan -n 2 model.safetensors >layout.tsv
	# A test can wait for a deadline only when time passes as it says.
	options=(-H 6 --grace none)
}

# first [OPTION...]: the pass that makes the spool, run demo.
first() {
	options+=("$@")
	run dl-sync run --run demo --layout layout.tsv "${options[@]}" \
		spool model.safetensors
	echo "$output"
	[ "$status" -eq 75 ]
}

# pass STATUS [OPTION...]: a pass ends with that.
pass() {
	local want=$1

	shift
	run dl-sync run "${options[@]}" "$@" spool
	echo "$output"
	[ "$status" -eq "$want" ]
}

# say NAME INSTANCE STEPS [STATE [VERSION...]]: learner/NAME, as many steps and
# 100 times as many tokens; versions as in latest unless given.
say() {
	local name=$1 instance=$2 steps=$3 state=${4:-training}

	{
		printf '# dl-spool 1\n# instance %s\n# clock %s\n' \
			"$instance" "$steps"
		printf '# steps %s\n# tokens %s\n# loss 2.5\n' \
			"$steps" $((100 * steps))
		printf '# state %s\n# layout -\n#fragment\tversion\n' "$state"
		versions
	} >spool/tmp/"$name".hello
	mv spool/tmp/"$name".hello spool/learner/"$name"
}

# versions: each fragment and its newest version.
versions() {
	awk '/^[0-9]/ { print $1 "\t" $2 }' spool/global/latest
}

# push NAME INSTANCE FRAGMENT SEQ STEP STEPS [SEED]
push() {
	"$tools/run/spool_push" spool "$1" "$2" "$3" "$4" "$5" "$6" \
		$((100 * $6)) "${7:-1}"
}

# answer NAME FRAGMENT: what taken/NAME says of it, in one line.
answer() {
	awk -v f="$2" '$1 == f { print $2, $3, $4, $5 }' spool/taken/"$1"
}

version() {
	awk -v f="$1" '$1 == f { print $2 }' spool/global/latest
}

# key WORD: its value in latest.
key() {
	sed -n "s/^# $1 //p" spool/global/latest
}

# Two learners who have pushed fragment 0 for the round of step 6.
two_pushes() {
	say ann 1 0
	say ben 2 0
	pass 75
	say ann 1 6
	say ben 2 6
	push ann 1 0 1 6 6 1
	push ben 2 0 1 6 6 2
}

@test "the first pass makes spool and store" {
	first
	[ "$(key run)" = demo ]
	[ "$(key state)" = running ]
	[ "$(version 0) $(version 1)" = "1.0 1.0" ]
	[ "$(b2sum -l 256 <spool/global/0.1.0 | cut -d ' ' -f 1)" = \
		"$(awk '$1 == 0 { print $4 }' spool/global/latest)" ]
	cat spool/global/[01].* | dl-join -l layout.tsv -o joined.safetensors
	dl-frag check -e model.safetensors joined.safetensors
	run dl-sync run nowhere
	[ "$status" -eq 66 ]
	mkdir empty
	run dl-sync run empty
	[ "$status" -eq 64 ]
	[[ $output == *"no model to make one from"* ]]
}

@test "a round opens, is pushed to and merged" {
	first
	two_pushes
	pass 0
	[[ $output == *"2 round"*"1 merged"* ]]
	[ "$(version 0) $(version 1)" = "1.1 1.0" ]
	[ "$(answer ann 0)" = "1 1 round -" ]
	[ "$(answer ben 0)" = "1 1 round -" ]
	[ "$(answer ben 1)" = "0 0 again -" ]
	[ "$(ls spool/open)" = 3.1 ]
	[ "$(tail -n +2 spool/open/3.1 | xargs)" = "ann ben" ]
	[ -z "$(ls spool/new/ann spool/new/ben spool/store/push | grep -v :)" ]
	[ "$(b2sum -l 256 <spool/global/0.1.1 | cut -d ' ' -f 1)" = \
		"$(awk '$1 == 0 { print $4 }' spool/global/latest)" ]
	pass 75
	[[ $output == *"round 3 of fragment 1 waits for ann ben"* ]]
}

@test "a quorum waits, and who is late is told so" {
	first --quorum 2
	two_pushes
	rm spool/new/ben/*
	pass 75
	[ "$(answer ann 0)" = "1 0 round -" ]
	[ "$(ls spool/store/push)" = 1 ]
	[[ $output == *"round 6 of fragment 0 waits for ben"* ]]
	push ben 2 0 1 6 6 2
	pass 0
	[ "$(version 0)" = 1.1 ]
	say ann 1 8
	push ann 1 0 2 6 1
	pass 75
	[ "$(answer ann 0)" = "2 2 late -" ]
}

@test "fewer learners than the quorum: the round waits for more" {
	first --quorum 2
	say ann 1 0
	pass 75
	say ann 1 6
	push ann 1 0 1 6 6
	pass 75
	[ "$(answer ann 0)" = "1 0 round -" ]
	[[ $output == *"fragment 0 waits for a quorum of 2 learners"* ]]
}

@test "the same pushes make the same bits, in one pass or in many" {
	first --quorum 2
	two_pushes
	cp -r spool copy
	pass 0
	mv spool once
	mv copy spool
	mkdir aside
	mv spool/new/ann/* aside
	pass 75
	mv aside/* spool/new/ann
	pass 0
	cmp spool/global/0.1.1 once/global/0.1.1
	cmp spool/store/momentum/0.1.1 once/store/momentum/0.1.1
}

@test "what is no push is left, what is a bad one set apart, and told" {
	first
	say ann 1 0
	pass 75
	say ann 1 6
	push ann 1 0 1 6 6
	name=6.0.1.$(printf '%064d' 0)
	other=6.1.1.$(printf '%064d' 1)
	cd spool/new/ann
	echo junk >notes
	mkdir 6.0.1.folder
	mkfifo "6.0.1.$(printf '%064d' 2)"
	ln -s ../../layout.tsv "6.0.1.$(printf '%064d' 3)"
	mkdir "6.0.1.$(printf '%064d' 4)"
	head -c 100 ./6.0.1.[1-9a-f]* >"$name" || true
	truncate -s 100M "$other"
	mkdir ../.hidden "../not a name"
	ln -s / ../eve
	cd ../../..
	pass 0
	[ "$(version 0)" = 1.1 ]
	[[ $output == *"1 round, 4 unfit, 1 not taken yet, 4 files passed over, 1 merged"* ]]
	[ "$(ls spool/refused | wc -l)" -eq 4 ]
	[ -f spool/new/ann/"$name" ]
	cmp spool/layout.tsv layout.tsv
	# In time it is set apart too, and then removed.
	pass 75 --stale 0s
	[ ! -e spool/new/ann/"$name" ]
	pass 75 --stale 0s
	pass 75 --stale 0s
	[ -z "$(find spool/refused -type f -o -type l)" ]
}

@test "a push is its folder's owner's, and no device" {
	[ "$(id -u)" -eq 0 ] || skip "only root may give files away"
	first
	say ann 1 0
	say eve 2 0
	pass 75
	say ann 1 6
	say eve 2 6
	chmod -R a+rwX spool/new
	push ann 1 0 1 6 6
	push eve 2 0 1 6 6
	push eve 2 1 1 3 3
	cd spool/new
	chown -R 1001 ann
	chown -R 1002 eve
	chown 1001 eve/6.0.*
	mknod "eve/6.0.2.$(printf '%064d' 2)" c 1 5 ||
		skip "no device can be made here"
	cd ../..
	pass 0
	[[ $output == *"new/eve/6.0.1."*": is not its learner's"* ]]
	[[ $output == *"new/eve/6.0.2."*"2: not a regular file"* ]]
	[[ $output == *"2 round, 2 unfit, 2 merged"* ]]
	[ "$(answer ann 0)" = "1 1 round -" ]
	[ "$(answer eve 0 | cut -d ' ' -f 1)" = 0 ]
	[ "$(answer eve 1 | cut -d ' ' -f 1)" = 1 ]
	[ "$(ls spool/refused | wc -l)" -eq 2 ]
}

@test "a folder where a file would be stops no pass" {
	first
	mkdir spool/open/12.0 spool/learner/eve
	pass 75
	[[ $output == *"dl-sync: learner/eve: not a regular file"* ]]
	[ -d spool/open/12.0 ]
}

@test "what the core refuses costs that push" {
	first
	say ann 1 0
	pass 75
	say ann 1 6
	push ann 1 0 1 6 0
	pass 75
	[ "$(answer ann 0)" = "1 1 refused empty" ]
	[[ $output == *"1 refused (empty: 1)"* ]]
	push ann 1 0 2 6 6
	pass 0
	[ "$(answer ann 0)" = "2 2 round -" ]
}

@test "files that come in another order wait for what explains them" {
	first --quorum 2
	say ann 1 0
	say ben 2 0
	pass 75
	say ben 2 6
	push ann 1 0 1 6 3 1
	push ann 1 0 2 6 3 2
	mkdir aside
	mv spool/new/ann/6.0.1.* aside
	pass 75
	[[ $output == *"1 not taken yet"* ]]
	say ann 1 6
	pass 75
	[ "$(answer ann 0)" = "0 0 again -" ]
	mv aside/* spool/new/ann
	pass 75
	[ "$(answer ann 0)" = "2 0 round -" ]
	push ben 2 0 1 6 6 2
	pass 0
	[ "$(answer ann 0)" = "2 2 round -" ]
}

@test "learners leave, fall silent and come back" {
	first
	say ann 1 0
	say ben 2 0
	pass 75
	say ann 1 6
	say ben 2 6
	pass 75
	say ann 1 6 leaving
	pass 75 -v
	[[ $output == *"ann has left"* ]]
	[ "$(tail -n +2 spool/open/6.0)" = ben ]
	pass 75 -v --dead 1ms
	[[ $output == *"ben has left"* ]]
	say ben 2 7
	pass 75 -v
	[[ $output == *"ben is here"* ]]
	rm spool/learner/ben
	pass 75 -v
	[[ $output == *"ben has left"* ]]
}

@test "old versions go when latest has not named them for a while" {
	first
	two_pushes
	pass 0
	[ -e spool/global/0.1.0 ]
	pass 75 --keep 1h
	[ -e spool/global/0.1.0 ]
	pass 75 --keep 0s
	[[ $output == *"1 old files removed"* ]]
	[ ! -e spool/global/0.1.0 ]
	[ -e spool/global/0.1.1 ]
	[ -e spool/global/1.1.0 ]
}

@test "a run ends when somebody asks, and its model is written" {
	first -o out.safetensors
	two_pushes
	dl-sync end spool
	pass 75
	[ "$(key state)" = ending ]
	[[ $output == *"learners have to push what they have"* ]]
	[ ! -e out.safetensors ]
	say ann 1 6 drained
	say ben 2 6 drained
	pass 0
	[ "$(key state)" = final ]
	[ "$(version 0)" = 1.1 ]
	say ann 1 6 leaving
	say ben 2 6 leaving
	pass 0
	[ "$(key state)" = done ]
	cat spool/global/0.1.1 spool/global/1.1.0 |
		dl-join -l layout.tsv -o joined.safetensors
	dl-frag check -e joined.safetensors out.safetensors
	pass 0
	run dl-sync end dir:empty
	[ "$status" -eq 66 ]
}

@test "without its tape, or with other options, a run goes on in a new epoch" {
	first --quorum 2
	two_pushes
	rm spool/new/ben/*
	pass 75
	rm spool/store/tape
	pass 75
	[ "$(key epoch)" = 2 ]
	[ "$(version 0)" = 2.0 ]
	# What was taken is not lost.
	[ "$(answer ann 0)" = "1 0 waiting -" ]
	say ann 1 12
	say ben 2 12
	pass 75
	push ann 1 0 2 12 6 3
	push ben 2 0 1 12 12 4
	pass 0
	[ "$(version 0)" = 2.1 ]
	[ "$(answer ann 0)" = "2 2 round -" ]
	pass 75 --quorum 1
	[[ $output == *"options are others"*"epoch 3"* ]]
	echo '{"event":"what"}' >>spool/store/tape
	pass 75 --quorum 1
	[[ $output == *"epoch 4"* ]]
	[ -e spool/store/tape.2 ]
	[ -e spool/store/tape.3 ]
}

@test "a store restored from an older copy never repeats a version" {
	first
	cp -r spool/store old
	two_pushes
	pass 0
	before=$(sha256sum spool/global/0.1.1)
	rm -r spool/store
	mv old spool/store
	pass 75
	[[ $output == *"older than what the spool shows"* ]]
	[ "$(key epoch)" = 2 ]
	[ "$(version 0)" = 2.0 ]
	[ "$(sha256sum spool/global/0.1.1)" = "$before" ]
	# Who goes on numbering its pushes is understood.
	say ann 1 12
	pass 75
	push ann 1 0 2 12 6 3
	pass 0
	[ "$(version 0)" = 2.1 ]
}

@test "a spool can be moved, and its store be elsewhere" {
	options+=(--store here)
	first
	two_pushes
	mv spool moved
	ln -s moved spool
	pass 0
	[ "$(version 0)" = 1.1 ]
	[ ! -e spool/store ]
	rm spool
	mv moved spool
	mv here there
	options=("${options[@]/here/there}")
	pass 75
	[ "$(key epoch)" = 1 ]
}

@test "an update goes beside the values with --global" {
	first --global int4
	two_pushes
	pass 0
	[ "$(key global)" = int4 ]
	read -r _ now _ _ bytes base hash size \
		< <(awk '$1 == 0' spool/global/latest)
	[ "$now" = 1.1 ]
	[ "$base" = 1.0 ]
	[ "$(stat -c %s spool/update/0.1.1)" = "$size" ]
	[ "$(b2sum -l 256 <spool/update/0.1.1 | cut -d ' ' -f 1)" = "$hash" ]
	[ "$size" -lt "$bytes" ]
	[ -e spool/store/error/0.1.1 ]
}

@test "learners may begin before the first pass after them" {
	first
	say ann 1 30
	push ann 1 0 1 6 6 1
	push ann 1 0 2 30 24 2
	pass 0
	[[ $output == *"2 round, 1 merged"* ]]
	[ "$(key clock)" = 30 ]
	[ "$(answer ann 0)" = "2 2 round -" ]
}

# ready_to_train: a model and a text, and a spool of them.
ready_to_train() {
	run_setup
	options=(-q -H 6 --grace none --steps 60 -o out.safetensors)
	run dl-sync run "${options[@]}" --layout layout.tsv spool \
		m/model.safetensors
	[ "$status" -eq 75 ]
	link=dir:spool
}

# until_over: passes as cron would start them, until the run is over.
until_over() {
	local end=$((SECONDS + 60))

	until [ "$(key state)" = done ]; do
		dl-sync run "${options[@]}" spool || [ $? -eq 75 ]
		[ "$SECONDS" -lt "$end" ]
		sleep 0.1
	done
}

@test "learners train a model through a spool" {
	ready_to_train
	learner ann --poll 50ms
	learner ben --poll 50ms
	until_over
	ends ann
	ends ben
	is_better
	[ "$(awk '/^[0-9]/ { print $2 }' spool/global/latest | sort -u)" != 1.0 ]
	[ -z "$(ls spool/store/push)" ]
	run_teardown
}

# both: two passes at once, with nothing old kept; their codes, smaller first.
both() {
	local one=0 two=0 first

	dl-sync run -q "${options[@]}" --keep 0s spool 2>>one.log &
	first=$!
	dl-sync run -q "${options[@]}" --keep 0s spool 2>>two.log || two=$?
	wait "$first" || one=$?
	if [ "$one" -le "$two" ]; then echo "$one $two"; else echo "$two $one"; fi
}

# TIMES=500 by hand.
@test "two passes at once, under readers, merge everything once" {
	times=${TIMES:-20}
	first
	say ann 1 0
	pass 75
	for i in 1 2; do
		"$tools/run/spool_reader" spool stop >reader.$i &
		pid[$i]=$!
	done
	for i in $(seq "$times"); do
		say ann 1 $((6 * i))
		push ann 1 0 "$i" $((6 * i)) 6 "$i" >/dev/null
		echo "pass $i: $(both)" >>codes
	done
	touch stop
	wait "${pid[1]}"
	wait "${pid[2]}"
	cat reader.1 reader.2 one.log two.log
	[ "$(grep -c ': 0 75' codes)" -eq "$times" ]
	[ "$(version 0)" = 1."$times" ]
	[ "$(answer ann 0)" = "$times $times round -" ]
	[ "$(grep -c '"push"' spool/store/tape)" -eq "$times" ]
	[ "$(ls spool/global | wc -l)" -le 5 ]
	[ "$(awk '{ print $1 }' reader.1)" -gt 0 ]
}

@test "a pass that is told to stop ends with its work shown" {
	first
	two_pushes
	dl-sync run -q "${options[@]}" spool &
	kill -TERM $!
	code=0
	wait $! || code=$?
	echo "$code"
	# It may be killed before it can be told.
	[ "$code" -eq 0 ] || [ "$code" -eq 143 ]
	pass 0 || pass 75
	[ "$(version 0)" = 1.1 ]
	[ "$(answer ann 0) $(answer ben 0)" = "1 1 round - 1 1 round -" ]
}

@test "a push that a killed pass has copied counts once, whoever has the name" {
	first --quorum 2
	two_pushes
	cp spool/new/ann/* spool/store/push/1
	cp spool/new/ben/* spool/store/push/2
	rm spool/new/ben/*
	# Another process of that name: its forerunner's work is not lost.
	say ben 3 0
	pass 75
	[ "$(answer ann 0)" = "1 0 round -" ]
	[ "$(ls spool/store/push | xargs)" = "1 2" ]
	[ -z "$(ls spool/new/ann)" ]
	say ben 3 6
	push ben 3 0 1 6 6 3
	pass 0
	[ "$(version 0)" = 1.1 ]
	[ "$(answer ben 0)" = "1 1 round -" ]
	[ -z "$(ls spool/store/push)" ]
}
