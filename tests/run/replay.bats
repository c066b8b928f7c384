#!/usr/bin/env bats
# A run that was recorded can be made again bit for bit, and whatever is not as it
# was is found where it is. DL_REPLAY_ROUNDS says how many rounds the runs have.

load run

rounds=${DL_REPLAY_ROUNDS:-24}

# merges N: waits until there are so many, as long as there are more and more.
merges() {
	for n in $(seq 1 8 "$1") "$1"; do
		wait_for has "$n" '"event":"merged"' tape
	done
}

# A late push was merged by itself, as far as the tape goes.
alone() {
	dl-sync replay tape 2>replay.log | awk '$3 == 1 { n++ } END { exit !n }'
}

# Pushes were late, by the tape.
late() {
	dl-stat -t tape | awk -F '\t' '$1 == "*" { exit !($11 > 0) }'
}

# record LATE: a run of eight learners, narrow both ways, some of them late, whose
# syncer dies once and is stopped once.
record() {
	syncer --record pushes --global int4 --quorum 4 --grace none \
		--late "$1" --max-norm 1e6
	background crowd "$abs_top_builddir/tests/run/crowd" "$link" 8 2000 7
	merges $((rounds / 3))
	kill_hard syncer
	for more in 2 3; do
		syncer --record pushes --global int4 --quorum 4 --grace none \
			--late "$1" --max-norm 1e6
		merges $((rounds * more / 3))
		[ "$more" -eq 3 ] || { kill "${pid[syncer]}" && ends syncer; }
	done
	wait_for late
	[ "$1" != now ] || wait_for alone
	dl-sync end -q "$link"
	ends syncer
	ends crowd
}

setup_file() {
	BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR
	run_setup
	record next
}

teardown_file() {
	for p in "${pid[@]}"; do
		kill -9 "$p" 2>/dev/null || true
	done
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	declare -gA pid=()
	for part in m layout.tsv pushes tape store; do
		ln -s "$BATS_FILE_TMPDIR/$part" .
	done
}

teardown() {
	run_teardown
}

# again [OPTION...] TAPE: made again, with all that was recorded.
again() {
	rm -rf again
	dl-sync replay -q --global int4 --layout layout.tsv --store again \
		--record pushes "$@" m/model.safetensors
}

# The line of the tape at which PATTERN comes for the n-th time.
line() {
	grep -n "$2" tape | sed -n "$1s/:.*//p"
}

# changed N SED: the tape with its line N changed.
changed() {
	sed "$1$2" tape >changed
	cmp -s tape changed && return 1
	true
}

# differs STATUS WORDS COMMAND...: it ends so, and says so.
differs() {
	run "${@:3}"
	echo "$output"
	[ "$status" -eq "$1" ]
	[[ $output == *"$2"* ]]
}

same_everywhere() {
	again tape >first
	cmp store/HEAD again/HEAD
	for kind in global momentum error; do
		diff -r "store/$kind" "again/$kind"
	done
	[ "$(grep -c '"event":"merged"' tape)" -le "$(grep -vc '#' first)" ]
	for cpu in baseline avx2 avx512; do
		for threads in 1 2; do
			DL_CPU=$cpu again --threads $threads tape | cmp first -
		done
	done
	dl-sync replay tape | cut -f 1-3 | cmp <(cut -f 1-3 first) -
}

@test "a run over three starts, pushes next when late, is the same everywhere" {
	[ "$(grep -c '"format"' tape)" -eq 3 ]
	late
	same_everywhere
}

@test "a run whose late pushes are merged by themselves is the same everywhere" {
	rm m layout.tsv pushes tape store
	run_setup
	record now
	same_everywhere
}

@test "what the tape says of a merge and was not so" {
	n=$(line 5 '"event":"merged"')
	at=": line $n: fragment "
	changed "$n" 's/\("values":"\)[0-9a-f]\{8\}/\100000000/'
	differs 1 "changed$at" again changed
	[[ $output == *": other values" || $output == *": other values"$'\n'* ]]
	changed "$n" 's/\("momentum":"\)[0-9a-f]\{8\}/\100000000/'
	differs 1 "changed$at" again changed
	[[ $output == *": other momentum"* ]]
	changed "$n" 's/\("trail":"\)[0-9a-f]\{8\}/\100000000/'
	differs 1 "changed$at" again changed
	[[ $output == *": other decisions came before it"* ]]
	differs 1 "changed$at" dl-sync replay changed
	changed "$n" 's/\("version":"\)1\./\111./'
	differs 1 "changed$at" dl-sync replay changed
	[[ $output == *": that merge was not decided on"* ]]
}

@test "what the tape says of all else and was not so" {
	n=$(line 5 '"event":"merged"')
	push=$(line 1 '"event":"push".*"l0"')
	changed "$push" 's/"norm":/&9/'
	differs 1 "changed: line $push: fragment " again changed
	[[ $output == *": not what the tape tells of"* ]]
	changed "$push" d
	differs 1 "changed: line " dl-sync replay changed
	changed "$push" 's/"tokens":/&1/'
	differs 1 "changed: line " dl-sync replay changed
	changed 1 's/"quorum":4/"quorum":3/'
	differs 1 "changed: line " dl-sync replay changed
	n=$(line 2 '"format"')
	changed "$n" 's/\("saved":{[^{]*"clock":\)/\11/'
	differs 1 "changed: line $n: the syncer went on from another state" \
		dl-sync replay changed
	changed "$n" 's/\("fragments":\[{"version":"1.\)/\11/'
	differs 1 "changed: line $n: fragment 0, version 1.1" \
		dl-sync replay changed
	# That learners are late says nothing of what was decided.
	changed "$n" 's/"wall":1/"wall":2/'
	dl-sync replay changed
}

# merged_of_l0: the line of the first push of l0 that was merged before the syncer
# died.
merged_of_l0() {
	local line push
	dl-sync replay tape | awk '$2 ~ /^1[.]/ { print $6 }' |
		tr ',' '\n' >of_merges
	sed '2,${/"format"/,$d}' tape | grep '"event":"push".*"l0"' |
		while read -r line; do
			push=$(sed 's/.*"push":\([0-9]*\).*/\1/' <<<"$line")
			! grep -qx "$push" of_merges || echo "$line"
		done | head -n 1
}

# The file of that push, whose values are f32.
file_of_l0() {
	local at fragment seq
	at=$(merged_of_l0)
	fragment=$(sed 's/.*"fragment":\([0-9]*\).*/\1/' <<<"$at")
	seq=$(sed 's/.*"seq":\([0-9]*\).*/\1/' <<<"$at")
	grep -l '"dl.learner":"l0"' pushes/* |
		xargs grep -l "\"dl.seq\":\"$seq\"" |
		xargs grep -l "\"dl.fragment\":\"$fragment\""
}

@test "pushes that are others than those that came" {
	file=$(file_of_l0)
	cp -r pushes/ ours
	rm pushes
	mv ours pushes
	last=$(tail -c 1 "$file" | od -An -tu1)
	head -c -1 "$file" >changed
	printf "%b" "\\x$(printf %x $((last ^ 128)))" >>changed
	rm "$file"
	differs 66 ": a push of l0 is not in pushes" again tape
	at=$(grep -o 'tape: line .* version [0-9.]*' <<<"$output")
	cp changed "$file"
	differs 65 "$file: not the bytes of its name" again tape
	# Of the same length, even: it is told by what it leads to.
	rm "$file"
	cp changed "pushes/$(b2sum -l 256 changed | cut -d ' ' -f 1)"
	differs 1 "$at: other " again tape
}

@test "another model and another optimizer" {
	rm m
	dl-train init -q -L 1 -H 2 -d 16 -c 16 -s 4 m
	differs 1 ", version 1.1: other values" again tape
	rm -r m
	ln -s "$BATS_FILE_TMPDIR/m" .
	differs 1 ", version 1.1: other values" again --outer-lr 0.1 tape
}

@test "another layout makes no store, and a name that nobody has is told of" {
	differs 65 "tape: line 1: of another layout: which --layout?" \
		dl-sync replay --fragments 2 --store new --record pushes tape \
		m/model.safetensors
	[ ! -e new ]
	differs 66 "tape: no learner nobody in it" \
		dl-sync replay --without nobody tape
}

@test "half a line, and a tape of two files" {
	again tape >whole
	head -c -20 tape >torn
	again torn >cut
	head -n "$(wc -l <cut)" whole | cmp cut -
	n=$(line 4 '"event":"merged"')
	head -n "$n" tape >tape.1
	tail -n "+$((n + 1))" tape >tape.2
	cat tape.1 tape.2 | again - | cmp whole -
	# The first file was lost.
	differs 65 "tape.2: line 1: an event before any start" again tape.2
	tail -n "+$(line 2 '"format"')" tape >late
	differs 65 "late: line 1: the run does not begin here" again late
	dl-sync replay late
}

@test "a commit that the syncer did not live to tell of" {
	n=$(line 6 '"event":"merged"')
	head -n "$n" tape >told
	again told >want
	saved=$(tr -d '\n' <again/HEAD |
		sed 's/.*"saved":\({.*}\),"files":.*/\1/')
	{
		head -n $((n - 1)) tape
		head -n 1 tape | sed "s/\"saved\":null/\"saved\":$saved/"
	} >untold
	again untold | cmp want -
	dl-sync replay untold | cut -f 1-3 | cmp <(cut -f 1-3 want) -
	# Nor had it told of its start.
	tail -n 1 untold >>untold
	again untold | cmp want -
}

# remade [OPTION...] TAPE [MODEL]: the run of the next test, made again.
remade() {
	rm -rf again
	dl-sync replay -q --store again --record pushes --layout layout.tsv "$@"
}

@test "a run whose store was lost, and that went on from a checkpoint" {
	rm m layout.tsv pushes tape store
	run_setup
	syncer --run demo --record pushes
	learner ann
	learner ben
	wait_for has 5 '"event":"merged"' tape
	dl-sync checkpoint "$link" then.tar.zst
	merges $(($(grep -c '"event":"merged"' tape) + 5))
	dl-sync checkpoint "$link" later.tar.zst
	kill_hard syncer
	rm -r store
	background syncer dl-sync serve --from then.tar.zst --store store \
		--listen "$link" --tape tape --record pushes
	merges $(($(grep -c '"event":"merged"' tape) + 5))
	dl-sync end -q "$link"
	for name in syncer ann ben; do
		ends $name
	done
	dl-stat -t tape | cut -f 13 | not grep base

	remade --from then.tar.zst tape m/model.safetensors >whole
	cmp store/HEAD again/HEAD
	diff -r store again -x lock -x HEAD
	dl-sync replay --from then.tar.zst tape | cut -f 1-3 |
		cmp <(cut -f 1-3 whole) -
	n=$(line 2 '"format"')
	at="tape: line $n: fragment "
	differs 1 "$at" remade tape m/model.safetensors
	differs 1 "$at" remade --from later.tar.zst tape m/model.safetensors
	differs 1 "$at" dl-sync replay tape

	# Of a folder it is the one that fits; from there on no model is needed.
	mkdir ck
	head -c 1000 then.tar.zst >ck/a.tar.zst
	mv later.tar.zst ck
	tail -n "+$n" tape >rest
	differs 65 "which model?" remade --from ck rest
	mv then.tar.zst ck
	remade --from ck rest >part
	diff -r store again -x lock
	tail -n +2 part | cmp <(tail -n "$(grep -vc '#' part)" whole) -
	differs 65 "ck/a.tar.zst: " remade --from ck/a.tar.zst rest
	differs 65 "which model?" remade --from ck tape
	differs 64 "--from" remade tape
}

@test "a learner that is left out, and tapes that say less" {
	again tape >with
	again --without l0 tape >without
	[ "$(wc -l <with)" -eq "$(wc -l <without)" ]
	paste with without | awk -F '\t' '
		/^#/ { next }
		$9 > $3 || $9 + 1 < $3 { exit 1 }
		$9 < $3 { less++ }
		END { exit !less }'
	sed 's/,"values":.*}$/}/' tape >older
	again older | cmp with -
	run dl-sync replay --store s tape
	[ "$status" -eq 64 ]
	run dl-sync replay --store s --record pushes tape
	[ "$status" -eq 64 ]
	run dl-sync replay tape m
	[ "$status" -eq 64 ]
}
