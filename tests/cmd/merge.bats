#!/usr/bin/env bats
# dl-sync merge: rounds by hand, whatever the deltas come in.

setup() {
	cd "$BATS_TEST_TMPDIR"
	for i in 1 2 3 4; do
		"$abs_top_builddir/tests/tensor/make_model" $i m$i llama
	done
	dl-frag plan -n 3 m1 >l
}

# push LEARNER MODEL [-m KEY=VALUE...]: m1 to MODEL by LEARNER, in fragments.
push() {
	local learner=$1 model=$2
	shift 2
	dl-frag diff -l l -m dl.learner="$learner" "$@" m1 "$model"
}

# refused CODE TEXT COMMAND...: it exits so and says so.
refused() {
	local code=$1 text=$2
	shift 2
	run "$@"
	echo "$status: $output"
	[ "$status" -eq "$code" ]
	[[ $output == *"$text"* ]]
}

# What the tensors of records are, however they are spread over them.
hashes() {
	dl-frag show -H "$@" | grep -v '^#' | cut -f 1,2,3,7 | sort
}

@test "the same deltas give the same bits, however they come" {
	for i in 2 3 4; do
		dl-frag diff m1 m$i >d$i
		push "d$i" m$i >p$i
	done
	dl-sync merge -o want m1 d2 d3 d4
	dl-frag check want
	[ "$(dl-frag show want | grep -c '^# record')" -eq 1 ]
	dl-sync merge m1 d4 d2 d3 | cmp - want
	for cpu in baseline avx2; do
		DL_CPU=$cpu dl-sync merge --threads 3 m1 d3 d4 d2 | cmp - want
	done
	# By fragments: of the layout, or as the base has been cut.
	hashes want >hashes
	dl-sync merge -l l m1 p2 p3 p4 | tee cut | hashes - | cmp - hashes
	dl-frag split -l l m1 | dl-sync merge - p4 p2 p3 | cmp - cut
	dl-join cut | dl-frag check -e want -
	cat p4 p3 p2 | dl-sync merge -l l m1 - | cmp - cut
	dl-sync merge -z -l l m1 p2 p3 p4 | dl-join | dl-frag check -e want -
	# Only some of the fragments.
	dl-frag split -l l -o parts m1
	refused 65 "p2: record 0: the base does not hold fragment 0" \
		dl-sync merge parts/001.frag p2
}

@test "a lone delta passes bit for bit; its step is what it should be" {
	dl-frag diff m1 m2 >d2
	dl-sync merge -n m1 d2 >update
	dl-frag check -e d2 update
	dl-sync merge -u u -o new m1 d2
	cmp u update
	dl-join -b m1 update >moved
	dl-sync merge --outer-lr 1 --momentum 0 m1 d2 | dl-frag check -e moved -
	# Nesterov's first step: lr (1 + mu).
	dl-sync merge --outer-lr 0.5 --momentum 0.6 m1 d2 >a
	dl-sync merge --outer-lr 0.8 --momentum 0 m1 d2 |
		dl-frag check -e a -t 1e-6 -
	dl-sync merge --outer-lr 0.8 --momentum 0.6 --no-nesterov m1 d2 |
		dl-frag check -e a -t 1e-6 -
}

@test "the state carries momentum from round to round" {
	dl-frag diff m1 m2 >d
	dl-sync merge --outer-lr 0.1 --no-nesterov -s state -o one m1 d
	dl-sync merge --outer-lr 0.1 --no-nesterov -s state -o two one d
	# b = g, then g / 2 + g: steps of 0.1 and 0.15.
	dl-sync merge --outer-lr 0.25 --momentum 0 m1 d |
		dl-frag check -e two -t 1e-6 -
	[ "$(dl-frag show state | grep -c dl.kind=momentum)" -eq 1 ]
	# By fragments, one of which is not there the second time.
	push ann m2 >p
	dl-sync merge -l l -s cut -o x m1 p
	hashes cut >before
	push ann m2 | dl-sync merge -l l -s cut -o x m1 - -w ann=0
	hashes cut | cmp - before
	# A merge that fails leaves the state as it was.
	cp state kept
	refused 73 nowhere dl-sync merge -s state -o nowhere/x m1 d
	head -c 3000 d >torn
	refused 65 torn dl-sync merge -s state -o y m1 d torn
	cmp state kept
	[ ! -e y ]
	[ -z "$(ls | grep tmp)" ]
	refused 65 "not momentum" dl-sync merge -s d m1 d
}

@test "weights come from counters, or from -w" {
	dl-frag diff m1 m2 >d2
	dl-frag diff m1 m3 >d3
	dl-sync merge -n -w d3=0 m1 d2 d3 | dl-frag check -e d2 -
	dl-sync merge -v -n -w d3=3 m1 d2 d3 2>shares >/dev/null
	grep -q '^0.d2.0.250000' shares
	grep -q '^0.d3.0.750000' shares
	# tokens * tokens / steps: 100 and 300.
	push ann m2 -m dl.steps=100 -m dl.tokens=100 >ann
	push ben m3 -m dl.steps=300 -m dl.tokens=300 >ben
	dl-sync merge -l l -v -n m1 ann ben 2>shares >a
	[ "$(grep -c 'ben.0.750000' shares)" -eq 3 ]
	[ "$(head -n 1 shares)" = \
		"$(printf '# fragment\tlearner\tweight\tnorm\tcosine')" ]
	dl-sync merge -l l -n -w d3=3 m1 <(push d2 m2) <(push d3 m3) |
		hashes >b
	hashes a | cmp - b
	dl-sync merge -l l -n --rule mean m1 ann ben | hashes | cmp -s - b && false
	refused 65 "no dl.steps and dl.tokens" \
		dl-sync merge -l l m1 ann <(push cid m4)
	dl-sync merge -l l -w cid=100 m1 ann <(push cid m4) >/dev/null
	refused 65 "-w dan: has no delta" dl-sync merge -w dan=1 m1 d2
	# With no weight left nothing moves.
	dl-sync merge -w d2=0 -w d3=0 m1 d2 d3 2>err | dl-frag check -e m1 -
	grep -q 'fragment 0 stays as it is: no weight' err
}

@test "pushes of one learner are added, each once" {
	push ann m2 -m dl.instance=7 -m dl.seq=1 >p1
	push ann m3 -m dl.instance=7 -m dl.seq=2 >p2
	dl-sync merge -l l -n m1 p2 p1 >update
	dl-join -b m1 p1 >moved
	dl-join -b moved p2 >twice
	dl-join -b m1 update | dl-frag check -e twice -t 1e-6 -
	refused 65 'a second delta by "ann"' dl-sync merge -l l m1 p1 p2 p1
	dl-frag diff m1 m2 >d2
	push ann m3 >p3
	refused 65 'second delta by "ann", not told apart by dl.seq' \
		dl-sync merge -l l m1 p3 p1
	refused 65 'a second delta by "d2"' dl-sync merge m1 d2 d2
}

@test "encoded deltas are decoded while they are merged" {
	for i in 2 3; do
		push "n$i" m$i | dl-quant -c int4 >q$i
		dl-quant -d q$i >p$i
	done
	dl-sync merge -l l m1 p2 p3 | hashes >want
	dl-sync merge -l l m1 q2 q3 | hashes | cmp - want
	refused 65 "encoded: decode it first" dl-sync merge \
		<(dl-frag split -l l m1 | dl-quant -c int8) p2
}

# spoil VALUE FILE: makes its last element, an F32, that value.
spoil() {
	printf "$1" | dd of="$2" bs=1 seek=$(($(stat -c %s "$2") - 4)) \
		conv=notrunc status=none
}

@test "what is not finite is refused by its place" {
	push ann m2 >ann
	cp ann nan
	spoil '\0\0\300\177' nan
	refused 65 'nan: record 2: tensor "model.norm.weight": element 7 is not' \
		dl-sync merge -l l -s state -o x m1 nan
	dl-frag split -l l -o parts m1
	cat parts/00[012].frag >base
	spoil '\0\0\200\377' base
	refused 65 'base: tensor "model.norm.weight": element 7 is not finite' \
		dl-sync merge -s state -o x base ann
	[ ! -e state ]
	[ ! -e x ]
	[ -z "$(ls | grep tmp)" ]
}

@test "a step that leads out of the range is refused" {
	push ann m2 >ann
	cp m1 high
	spoil '\346\261\141\177' high # 3e38
	spoil '\346\261\141\177' ann
	refused 65 'outer step: tensor "model.norm.weight": element 7 is not' \
		dl-sync merge -l l -s state -o x high ann
	# Twice the momentum of the largest is too large itself.
	dl-sync merge -l l -s state -o x --outer-lr 0 \
		--no-nesterov m1 ann
	cp state before
	refused 65 'element 7 is not finite' dl-sync merge -l l -s state \
		-o y --outer-lr 0 --no-nesterov m1 ann
	cmp state before
	[ ! -e y ]
	# Half precision ends at 65504.
	sed 's/F32/F16/' l >narrow
	dl-join -l narrow -o half m1
	dl-frag plan -n 3 half >l
	dl-frag diff -l l half half >ann
	spoil '\000\000\200\107' ann # 65536
	refused 65 'tensor "model.norm.weight": element 7 is too large for F16' \
		dl-sync merge -l l -s other -o y --outer-lr 1 --momentum 0 \
		half ann
	[ ! -e other ]
	[ ! -e y ]
}

@test "tied tensors follow, what is local stays, dtypes are the base's" {
	dl-frag plan -n 3 --alias lm_head.weight=model.embed_tokens.weight \
		--skip '*layers.0.norm*' m1 >tied
	dl-frag diff -l tied m1 m2 >d
	dl-sync merge -l tied -o cut m1 d
	dl-join cut >new
	dl-frag show -H new >shown
	[ "$(grep -c "$(awk '/^lm_head/ { print $7 }' shown)" shown)" -eq 2 ]
	[ "$(dl-frag show -H m1 | grep layers.0.norm)" = \
		"$(grep layers.0.norm shown)" ]
	dl-join -b m1 -l tied d >moved
	dl-sync merge --outer-lr 1 --momentum 0 -l tied m1 d | dl-join |
		dl-frag check -e moved -
	dl-quant -c bf16 m1 >half
	dl-frag diff m1 m2 >whole
	dl-sync merge half whole >new
	[ "$(dl-frag show new | grep -c BF16)" -eq 9 ]
	dl-sync merge m1 whole | dl-frag check -t 0.05 -e new -
}

@test "each output has a file of its own" {
	push ann m2 >ann
	ln -s x link
	mkdir folder
	refused 64 '-o and -s: both are x' dl-sync merge -l l -o x -s ./x m1 ann
	refused 64 '-u and -s: both are' \
		dl-sync merge -l l -o x -u y -s folder/../y m1 ann
	refused 64 '-o and -u: both are' dl-sync merge -l l -o x -u x m1 ann
	dl-sync merge -l l -o x m1 ann
	refused 64 '-o and -u: both are' dl-sync merge -l l -o x -u link m1 ann
	dl-sync merge -l l -o /dev/null -u /dev/null -s state m1 ann
	refused 73 'an empty name' dl-sync merge -l l -o '' m1 ann
}

@test "what does not belong together is refused" {
	dl-frag diff m1 m2 >d2
	push ann m2 >p2
	refused 65 "give its layout (-l)" dl-sync merge m1 p2
	refused 65 "of no fragment" dl-sync merge -l l m1 d2
	refused 65 "not a delta or push" dl-sync merge m1 m2
	refused 65 "not values to start from" dl-sync merge d2 d2
	dl-frag plan -n 2 m1 >other
	refused 65 "dl.layout is" dl-sync merge -l other m1 p2
	dl-frag diff -m dl.run=one m1 m2 >one
	dl-frag diff -m dl.run=two m1 m3 >two
	refused 65 'two: dl.run is "two", not one' dl-sync merge m1 one two
	refused 64 "at least one delta" dl-sync merge m1
	refused 64 "standard input" dl-sync merge - - d2
	refused 64 "no momentum" dl-sync merge -n -s state m1 d2
	refused 64 "not NAME=WEIGHT" dl-sync merge -w d2 m1 d2
	refused 66 "none" dl-sync merge m1 none
}
