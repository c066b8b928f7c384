#!/usr/bin/env bats
# --commit: what is told of before it is committed, and what a crash takes.

load run.bash

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# newest: of each fragment the version that was merged last, by the tape.
newest() {
	sed -n 's/.*"event":"merged".*"fragment":\([0-9]*\).*"version":"\([0-9.]*\)".*/\1.\2/p' \
		tape | awk -F . '{ last[$1] = $0 } END { for (p in last) print last[p] }' |
		sort
}

# finishes LEARNER...: the run is ended, and so are they.
finishes() {
	dl-sync end "$link"
	ends syncer
	for name; do
		ends "$name"
	done
	is_better
}

@test "many merges are one commit, and a signal commits the last" {
	syncer --commit 5
	learner ann
	wait_for has 12 '"merged"' tape
	[ "$(find store/global -type f | wc -l)" -le 6 ]
	kill "${pid[syncer]}"
	ends syncer
	ls store/global >global
	ls store/momentum | cmp global -
	newest | cmp - global
	grep '"merged"' tape | not grep '"values"'
	dl-sync replay tape >made
	syncer --commit 5
	wait_for has 2 '"join".*"ann"' tape
	wait_for has 20 '"merged"' tape
	finishes ann
	newest | cmp - <(ls store/global)
	dl-sync replay -q tape
}

@test "what a crash takes is made anew" {
	syncer --commit 10000
	learner ann
	learner ben
	wait_for has 9 '"merged"' tape
	ls store/global | cmp - <(printf '%s.1.0\n' 0 1 2)
	kill_hard syncer
	syncer --commit 10000
	wait_for has 2 '"join".*"ann"' tape
	wait_for has 2 '"join".*"ben"' tape
	before=$(merged)
	wait_for has $((before + 9)) '"merged"' tape
	finishes ann ben
	newest | cmp - <(ls store/global)
	run dl-sync replay -q tape
	[ "$status" -eq 1 ]
}

@test "updates in a narrow codec, with what they owe" {
	syncer --commit 4 --global int4
	learner ann
	wait_for has 12 '"merged"' tape
	kill "${pid[syncer]}"
	ends syncer
	newest | cmp - <(ls store/error)
	syncer --commit 4 --global int4
	wait_for has 2 '"join".*"ann"' tape
	wait_for has 20 '"merged"' tape
	finishes ann
}

# hashed: fragments made by a merge whose hashes HEAD says.
hashed() {
	grep -cE '"made":"1\.[1-9][0-9]*","global":"[0-9a-f]{64}"' store/HEAD
}

# check_hashes: what HEAD says of files is so, and the same of all of a fragment.
check_hashes() {
	python3 - <<-'end'
		import hashlib, json
		for p, f in enumerate(json.load(open("store/HEAD"))["files"]):
		    made = f.pop("made")
		    for kind, said in f.items():
		        data = open(f"store/{kind}/{p}.{made}", "rb").read()
		        hash = hashlib.blake2b(data, digest_size=32)
		        assert said in (None, hash.hexdigest()), (p, kind)
		    assert len({said is None for said in f.values()}) == 1, p
	end
}

@test "files are hashed after their commits" {
	syncer
	learner ann
	wait_for hashed
	grep '"merged"' tape | grep '"trail"'
	grep '"merged"' tape | not grep '"values"'
	kill_hard syncer
	check_hashes
	kill_hard ann
	syncer
	wait_for has 1 "goes on" syncer.log
	wait_for grep -q '"epoch":2' store/HEAD
	not grep null store/HEAD
	check_hashes
	learner ann
	wait_for has 2 '"join".*"ann"' tape
	kill "${pid[syncer]}"
	ends syncer
	check_hashes
	dl-sync check store
}

@test "updates' errors are hashed, too" {
	syncer --global int4
	learner ann
	wait_for grep -qE '"error":"[0-9a-f]{64}"' store/HEAD
	kill_hard syncer
	check_hashes
}

@test "pushes are recorded to make each merge again" {
	run dl-sync serve --store store --listen "$link" --record pushes \
		--tape tape --commit 2 m/model.safetensors
	[ "$status" -eq 64 ]
	[[ "$output" == *"--commit"* ]]
}
