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
# pushes that were merged.
rounds() {
	dl-sync replay -q tape >merges
	dl-frag show pushes/* | grep '^# record' >shown
	awk '
	function get(key) {
		if (!match($0, key "\"?[:=]\"?[^\",\t]*"))
			return ""
		key = substr($0, RSTART, RLENGTH)
		sub(/.*[:=]"?/, "", key)
		return key
	}
	FILENAME == "shown" {
		push = get("dl.learner") " " get("dl.instance") " " \
			get("dl.fragment") " " get("dl.seq")
		split($0, column, "\t")
		file[push] = column[3]
		next
	}
	FILENAME == "tape" && /"event":"push"/ {
		push = get("learner") " " get("instance") " " \
			get("fragment") " " get("seq")
		number[get("push")] = file[push]
	}
	FILENAME == "merges" && !/^#/ {
		n = split($6, merged, ",")
		line = $1
		for (i = 1; i <= n; i++)
			line = line " " number[merged[i]]
		print line
	}' shown tape merges
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

# field KEY: of the record whose line dl-frag show has printed, in $line.
field() {
	[[ $line =~ dl\.$1=([^$'\t']*) ]] && echo "${BASH_REMATCH[1]}"
}

# pass STATUS [ARGUMENT...]: dl-sync run over the spool.
pass() {
	local want=$1 code=0
	shift
	dl-sync run -q --run demo -H 6 --quorum 2 --grace none --min-h 0 \
		--max-norm 1e6 "$@" || code=$?
	[ "$code" -eq "$want" ]
}

# say STEPS: ann and ben have come to the clock, with that much work done.
say() {
	local name
	for name in ann ben; do
		{
			printf '# dl-spool 1\n# instance %s\n# clock %s\n' \
				"${instance[$name]}" "$clock"
			printf '# steps %s\n# tokens %s\n# loss nan\n' "$1" \
				$((1000 * $1))
			printf '# state training\n# layout -\n'
			printf '#fragment\tversion\n'
			grep '^[0-9]' spool/global/latest | cut -f 1,2
		} >spool/tmp/"$name".hello
		mv spool/tmp/"$name".hello spool/learner/"$name"
	done
}

# put PUSH: into the spool, as its learner would.
put() {
	local line step folder
	line=$(dl-frag show "$1" | grep '^# record')
	step=$(field step)
	[ "$step" -le "$clock" ] || clock=$step
	folder=spool/new/$(field learner)
	mkdir -p "$folder"
	cp "$1" "spool/tmp/$(field learner).push"
	mv "spool/tmp/$(field learner).push" \
		"$folder/$step.$(field fragment).$(field seq).${1#pushes/}"
}

# Makes the rounds again, each in one pass over a spool.
merge_by_passes() {
	local fragment pushes push line clock=0 steps=0
	local -A instance=()
	for push in pushes/*; do
		line=$(dl-frag show "$push" | grep '^# record')
		instance[$(field learner)]=$(field instance)
	done
	pass 75 --layout layout.tsv spool m/model.safetensors
	say 0
	pass 75 spool
	while read -r fragment pushes; do
		for push in $pushes; do
			put "$push"
		done
		steps=$((steps + 200))
		say "$steps"
		pass 0 --record kept spool
	done
}

@test "rounds by hand come to what the daemon came to" {
	syncer --quorum 2 --late next --max-norm 1e6 --record pushes
	learner ann
	learner ben --push int4
	wait_for has 7 '"event":"merged"' tape
	dl-sync end -q "$link"
	ends syncer
	ends ann
	ends ben
	for f in pushes/*; do
		[ "$(b2sum -l 256 "$f" | cut -d ' ' -f 1)" = "${f#pushes/}" ]
	done
	[ "$(grep -c '"push"' tape)" -eq "$(ls pushes | wc -l)" ]
	rounds >rounds
	merge_by_hand <rounds
	same_as_by_hand
	dl-join base | dl-frag check -e out.safetensors
	# One that starts from a version that the base has not reached.
	push=$(grep -l '"dl.base":"1\.[0-9]"' pushes/* | head -n 1)
	cat store/global/* >now
	dl-sync merge -q now "$push" >/dev/null
	sed -e 's/"dl.base":"1\.[0-9]"/"dl.base":"1.99"/' \
		-e 's/"dl.learner":"\(..\)."/"dl.learner":"\1"/' \
		"$push" >newer # no longer than it was
	run dl-sync merge -q -o out now newer
	[ "$status" -eq 65 ]
	[[ $output == *"made on version 1.99, but the base is 1."* ]]
	[ ! -e out ]
}

@test "passes over a spool come to it too" {
	syncer --run demo --wait --quorum 2 --max-norm 1e6 --record pushes
	learner ann
	learner ben
	wait_for has 7 '"merged"' tape
	kill -TERM "${pid[syncer]}"
	ends syncer
	rounds >rounds
	merge_by_hand <rounds
	same_as_by_hand
	merge_by_passes <rounds
	for kind in global momentum; do
		hashes "store/$kind"/* >want
		hashes "spool/store/$kind"/* | cmp - want
	done
	# So does a replay of the passes, of what they have kept.
	dl-sync replay -q --store again --record kept --layout layout.tsv \
		spool/store/tape m/model.safetensors >merges
	[ "$(grep -c '"values":"[0-9a-f]' spool/store/tape)" -eq \
		"$(wc -l <rounds)" ]
	[ "$(grep -vc '^#' merges)" -eq "$(wc -l <rounds)" ]
	cmp spool/store/HEAD again/HEAD
	for kind in global momentum; do
		diff -r "spool/store/$kind" "again/$kind"
	done
	rm "kept/$(ls kept | head -n 1)"
	run dl-sync replay -q --store other --record kept --layout layout.tsv \
		spool/store/tape m/model.safetensors
	[ "$status" -eq 66 ]
}

@test "a replay ends with the store that the run left" {
	syncer --record pushes
	learner ann
	learner ben --push int4
	wait_for has 4 '"merged"' tape
	kill -TERM "${pid[syncer]}"
	ends syncer
	rounds >rounds
	syncer --record pushes --steps 30
	ends syncer
	dl-sync replay -q --store again --record pushes --layout layout.tsv \
		tape m/model.safetensors >merges
	[ "$(wc -l <merges)" -eq $((1 + $(grep -c '"event":"merged"' tape))) ]
	cmp store/HEAD again/HEAD
	for kind in global momentum; do
		diff -r "store/$kind" "again/$kind"
	done
	# Another outer optimizer comes to something else.
	run dl-sync replay -q --store other --record pushes \
		--layout layout.tsv --outer-lr 0.1 tape m/model.safetensors
	[ "$status" -eq 1 ]
	[[ $output == *"tape: line "*": fragment "*", version 1.1: other values"* ]]
	mv "$(head -n 1 rounds | cut -d ' ' -f 2)" away
	run dl-sync replay -q --store third --record pushes \
		--layout layout.tsv tape m/model.safetensors
	[ "$status" -eq 66 ]
	[[ $output == *"is not in pushes"* ]]
}
