#!/usr/bin/env bats
# The same pushes make the same bits, whoever merges them.

load run

setup() {
	run_setup
}

teardown() {
	run_teardown
}

# What tensors are, wherever they lie.
hashes() {
	dl-frag show -H "$@" | grep -v '^#' | cut -f 1,2,3,7 | sort
}

# The rounds of a tape, one a line: fragment, then the files of the recorded
# pushes of it since it was merged before.
rounds() {
	dl-frag show pushes/* | grep '^# record' | awk '
	function get(key) {
		if (!match($0, key "\"?[:=]\"?[^\",\t]*"))
			return ""
		key = substr($0, RSTART, RLENGTH)
		sub(/.*[:=]"?/, "", key)
		return key
	}
	FNR == NR {
		push = get("dl.learner") " " get("dl.instance") " " \
			get("dl.fragment") " " get("dl.seq")
		split($0, column, "\t")
		file[push] = column[3]
		next
	}
	/"event":"push"/ {
		push = get("learner") " " get("instance") " " \
			get("fragment") " " get("seq")
		waiting[get("fragment")] = waiting[get("fragment")] " " file[push]
	}
	/"event":"merged"/ {
		print get("fragment") waiting[get("fragment")]
		delete waiting[get("fragment")]
	}' - tape
}

# Makes them again from the first model on: values in base, and momentum.
merge_by_hand() {
	local fragment pushes
	cp m/model.safetensors base
	while read -r fragment pushes; do
		# shellcheck disable=SC2086 # names of hashes
		dl-sync merge -q -l layout.tsv -s momentum -o base base $pushes
	done
}

# The run's store holds what the rounds by hand came to.
same_as_by_hand() {
	hashes store/global/* >want
	[ "$(wc -l <want)" -eq "$(grep -vc '^#' layout.tsv)" ]
	hashes base | cmp - want
	hashes store/momentum/* >want
	hashes momentum | cmp - want
}

@test "rounds by hand come to what the daemon came to" {
	syncer --quorum 2 --late next --max-norm 1e6 --steps 30 --record pushes
	learner ann
	learner ben --push int4
	ends syncer
	ends ann
	ends ben
	for f in pushes/*; do
		[ "$(b2sum -l 256 "$f" | cut -d ' ' -f 1)" = "${f#pushes/}" ]
	done
	[ "$(grep -c '"push"' tape)" -eq "$(ls pushes | wc -l)" ]
	rounds >rounds
	[ "$(wc -l <rounds)" -gt 6 ]
	merge_by_hand <rounds
	same_as_by_hand
	dl-join base | dl-frag check -e out.safetensors
	# One that starts from a version that the base has not reached.
	push=$(grep -l '"dl.base":"1.[0-9]"' pushes/* | head -n 1)
	cat store/global/* >now
	dl-sync merge -q now "$push" >/dev/null
	sed 's/"dl.base":"1.[0-9]"/"dl.base":"9.9"/' "$push" >newer
	run dl-sync merge -q -o out now newer
	[ "$status" -eq 65 ]
	[[ $output == *"made on version 9.9, but the base is 1."* ]]
	[ ! -e out ]
}
