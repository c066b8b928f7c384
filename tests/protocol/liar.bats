#!/usr/bin/env bats
# Members with keys of their own that lie: it costs them the push, and the run
# nothing.

load ../run/run.bash

setup() {
	command -v python3 >/dev/null || skip "python3 is not installed"
	python3 -c 'import cryptography' 2>/dev/null ||
		skip "python3-cryptography is not installed"
	run_setup
}

teardown() {
	run_teardown
}

refused='nan inf huge empty count base clock'

# keys NAME...: of those who may come.
keys() {
	for name; do
		dl-key gen -o "$name.key"
		echo "$(dl-key pub "$name.key") $name"
	done >authorized
}

# lies LIE: a member whose name says how.
lies() {
	background "$1" python3 "$abs_top_srcdir/tests/protocol/liar.py" \
		--key "$1.key" -n "$1" "$1" "$link"
}

# told LIE WORDS: the answer to each of its pushes.
told() {
	echo "$1: $(sort "$1.log" | uniq -c | tr '\n' ' ')"
	[ "$(sort -u "$1.log")" = "$2" ]
}

# again [OPTION...]: the merges of the run, made anew.
again() {
	rm -rf again
	dl-sync replay -q --store again --record pushes --layout layout.tsv \
		"$@" tape m/model.safetensors
}

@test "what members lie about is refused, counted, and leaves no trace" {
	keys ann ben syncer $refused layout shape report fast old twice
	link=tcp:127.0.0.1:0
	syncer -H 24 --key syncer.key --authorized authorized --record pushes
	wait_for has 1 "listens at tcp" syncer.log
	link=tcp:$(dl-key pub syncer.key)@$(sed -n \
		's/.*listens at tcp:\(.*@\)*//p' syncer.log)
	learner ann --key ann.key
	learner ben --key ben.key
	# From then on it is known how long pushes are.
	wait_for has 27 '"merged"' tape
	for lie in $refused; do
		lies "$lie"
	done
	lies layout
	lies shape
	for lie in $refused; do
		ends "$lie"
	done
	told nan "refused finite"
	told inf "refused finite"
	told huge "refused norm"
	told empty "refused empty"
	told count "refused count"
	told base "refused base"
	told clock "refused clock"
	ends layout 65
	has 1 "refused: this run has another layout" layout.log
	ends shape 65
	has 1 "refused: push of .* has another shape than" shape.log
	has 1 "shape at .*: refused: push of .* another shape than" syncer.log
	for lie in report fast old; do
		lies "$lie"
	done
	for lie in report fast old; do
		ends "$lie"
	done
	# What was made from an old version is as good as any.
	has 1 "^round" old.log
	not grep refused old.log
	lies twice
	ends twice
	has 2 again twice.log
	before=$(merged)
	wait_for has $((before + 3)) '"merged"' tape
	kill "${pid[syncer]}"
	ends syncer
	dl-stat -t tape >stat
	cat stat
	for lie in nan:finite inf:finite huge:norm empty:empty count:count \
		base:base clock:clock report:clock fast:rate; do
		grep -q "^${lie%:*}	.*	${lie#*:}:[1-9][0-9]*	" stat
	done
	grep -E "^(ann|ben|old|twice)	" stat | cut -f 13 | not grep '[a-z]'
	again >with
	cmp store/HEAD again/HEAD
	diff -r store/global again/global
	for lie in nan clock; do
		again --without "$lie" | cmp with -
	done
	again --without twice >without
	cmp -s with without && false
	[ "$(wc -l <with)" -eq "$(wc -l <without)" ]
}

@test "replay --without a name" {
	run dl-sync replay --store s --record r --without .x tape m
	[ "$status" -eq 64 ]
	[[ $output == *"--without .x: not a name"* ]]
}
