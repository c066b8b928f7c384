#!/usr/bin/env bats
# dl-frag and dl-join: what is cut comes back, and what is wrong is named.

setup() {
	cd "$BATS_TEST_TMPDIR"
}

make_model() {
	"$abs_top_builddir/tests/tensor/make_model" "$@"
}

# A small language model with its layout and fragments.
make_llama() {
	make_model 1 m llama
	dl-frag plan -n 3 m >layout.tsv
	dl-frag split -l layout.tsv -o frags m
}

# refused CODE TEXT COMMAND...: it exits so and says so.
refused() {
	code=$1
	text=$2
	shift 2
	run "$@"
	echo "$status: $output"
	[ "$status" -eq "$code" ]
	case $output in *"$text"*) ;; *) return 1 ;; esac
}

@test "split | join gives back every odd model bit for bit" {
	set -- balanced tensor layer strided
	for seed in 1 2 3 4 5 6 7 8; do
		make_model $seed m
		dl-frag plan -n 5 -s $1 m >l
		dl-frag split -l l m | dl-join >joined
		dl-frag check -e m joined
		# The canonical form of the original has the same bytes.
		dl-join m | cmp - joined
		set -- "$2" "$3" "$4" "$1"
	done
}

@test "sharded models come back as one file" {
	for seed in 1 2; do
		make_model $seed shards$seed 3
		dl-frag plan -n 2 --skip 'a*' shards$seed >l
		dl-frag split -l l shards$seed/model.safetensors.index.json |
			dl-join -o joined
		dl-frag check -e shards$seed joined
		dl-join shards$seed | cmp - joined
	done
}

@test "fragments in a folder, in any order" {
	make_llama
	[ "$(ls frags | tr '\n' ' ')" = "000.frag 001.frag 002.frag local.frag " ]
	dl-join -o joined frags/local.frag frags/002.frag frags/000.frag \
		frags/001.frag
	cmp m joined
	cat frags/002.frag frags/00[01].frag | dl-join -l layout.tsv \
		frags/local.frag - | cmp - m
}

@test "join names what is missing, twice, or disagrees" {
	make_llama
	refused 65 "missing: fragment 1, the local part" \
		dl-join frags/000.frag frags/002.frag
	refused 65 "missing: fragment 0, fragment 2" \
		dl-join -l layout.tsv frags/001.frag
	dl-frag plan -n 9 m | dl-frag split -l - -o many m
	refused 65 "fragment 8 and 1 more" dl-join many/000.frag
	sed 's/"dl.fragment":"1"/"dl.fragment":"9"/' frags/001.frag >odd
	refused 65 "odd: fragment 9 of 3" dl-join frags/000.frag odd
	refused 65 "fragment 2 comes twice: in frags/002.frag and in" \
		dl-join frags/*.frag frags/002.frag
	dl-frag plan -n 2 m | dl-frag split -l - -o other m
	refused 65 "other/001.frag: dl.layout is" \
		dl-join frags/*.frag other/001.frag
	refused 65 "other/000.frag: of layout" \
		dl-join -l layout.tsv other/*.frag
	refused 65 'tensor "lm_head.weight" comes twice: in m and in m' \
		dl-join m m
	refused 66 "none.frag: No such file" dl-join none.frag
	refused 65 "" dl-join /dev/null
	[ ! -e joined ]
}

@test "output appears whole or not at all" {
	make_llama
	head -c 300 frags/001.frag >cut.frag
	refused 65 "cut.frag" dl-join -o joined frags/000.frag cut.frag
	[ ! -e joined ]
	refused 73 "nowhere/joined" dl-join -o nowhere/joined frags/*.frag
	[ -z "$(ls | grep tmp)" ]
}

@test "a file that may not grow is an error, and leaves nothing" {
	make_llama
	refused 74 "joined: File too large" \
		bash -c 'ulimit -f 1 && exec dl-join -o joined m'
	refused 74 "part/000.frag: File too large" \
		bash -c 'ulimit -f 1 && exec dl-frag split -l layout.tsv -o part m'
	[ -z "$(ls | grep -e joined -e part)" ]
}

@test "more fragments than files may be open" {
	make_llama
	dl-frag plan -n 9 m >many.tsv
	dl-frag split -l many.tsv -o many m
	[ "$(ls many | wc -l)" -ge 9 ]
	bash -c 'ulimit -n 8 && exec dl-frag split -l many.tsv -o few m 3>&-'
	diff -r many few
}

@test "base and deltas make the new model" {
	make_llama
	make_model 2 new llama
	dl-frag diff m new >delta
	dl-join -b m -o joined delta
	dl-frag check -e new -t 1e-8 joined
	dl-frag diff -l layout.tsv m new | dl-join -b m | cmp - joined
	dl-frag diff m m | dl-join -b m | cmp - m
	refused 65 "a delta needs a base" dl-join delta
	refused 65 'm: tensor "lm_head.weight": in the base only' \
		dl-frag diff m frags/001.frag
	[ "$(dl-frag show delta | grep -c dl.kind=delta)" -eq 1 ]
}

# spoil VALUE FILE: makes its last element, an F32, that value.
spoil() {
	printf "$1" | dd of="$2" bs=1 seek=$(($(stat -c %s "$2") - 4)) \
		conv=notrunc status=none
}

@test "a sum or value that its type cannot hold is named" {
	make_llama
	dl-frag diff m m >delta
	cp m high
	spoil '\346\261\141\177' high # 3e38
	spoil '\346\261\141\177' delta
	refused 65 'tensor "model.norm.weight": element 7 is too large for F32' \
		dl-join -b high -o joined delta
	sed 's/F32/F16/' layout.tsv >narrow
	refused 65 'element 7 is too large for F16' \
		dl-join -l narrow -o joined high
	[ ! -e joined ]
	# What is infinite already stays so.
	spoil '\000\000\200\177' high
	dl-join -l narrow -o joined high
}

@test "a base keeps what no record replaces" {
	make_llama
	make_model 2 new llama
	dl-join -b new -o joined frags/001.frag
	refused 1 "differs" dl-frag check -e m joined
	for i in 0 2; do
		dl-frag split -l layout.tsv joined -o got
		dl-frag split -l layout.tsv new -o want
		cmp got/00$i.frag want/00$i.frag
	done
	cmp got/001.frag frags/001.frag
}

@test "base plus zero keeps the bits of every dtype" {
	for seed in 1 2 3; do
		make_model $seed m
		dl-join m >canonical
		dl-frag diff m m >delta || continue
		dl-join -b m delta >joined
		dl-frag plan -n 3 m >l
		# NaN minus NaN is not 0: compare what holds none.
		dl-frag check -v -e m -t 0 joined
	done
}

@test "tied tensors are planned together and filled in" {
	make_llama
	dl-frag plan -n 3 --alias lm_head.weight=model.embed_tokens.weight m >l
	grep -q 'lm_head.weight.*alias=model.embed_tokens.weight$' l
	dl-frag split -l l m | dl-join | cmp - m
	# A set without the tied tensor: deltas leave it out.
	make_model 2 new llama
	dl-frag diff -l l m new >delta
	[ -z "$(dl-frag show delta | grep lm_head)" ]
	dl-join -l l -b m delta >joined
	dl-frag split -l l joined | dl-frag show >/dev/null
	dl-frag show -j joined | grep -q lm_head
}

@test "a layout gives dtypes, and globals are values too" {
	make_llama
	sed 's/F32/BF16/' layout.tsv >bf16.tsv
	dl-join -l bf16.tsv -o half m
	[ "$(dl-frag show half | grep -c BF16)" -eq 9 ]
	dl-frag check -e m -t 1e-3 half
	refused 1 "is BF16 and F32" dl-frag check -e m half
	sed -i 's/params/global/' frags/*.frag
	dl-join frags/*.frag | dl-frag check -e m
	sed -i 's/global/parrot/' frags/001.frag
	refused 65 '001.frag: a record of kind "parrot"' dl-join frags/*.frag
}

@test "plans are the same bytes each time, and rules are kept" {
	make_llama
	dl-frag plan -n 3 m | cmp - layout.tsv
	dl-frag plan -n 3 - <m | cmp - layout.tsv
	dl-frag plan --rule '*norm*=stat' --rule 'model.norm.*=mean' m >l
	[ "$(grep -c 'stat$' l)" -eq 2 ]
	grep -q '^model.norm.weight.*mean$' l
	refused 64 "--rule a=b: not" dl-frag plan --rule a=b m
	refused 64 "-s odd: not" dl-frag plan -s odd m
	refused 0 "no tensor matches zzz*" dl-frag plan --skip 'zzz*' m
	refused 65 "no tensor to plan" dl-frag plan --skip '*' m
	refused 65 'cannot tie a tensor to "nothing"' \
		dl-frag plan --alias model.norm.weight=nothing m
}

@test "check says what differs" {
	make_llama
	make_model 2 new llama
	dl-frag check m
	dl-frag check -l layout.tsv m
	cat frags/*.frag | dl-frag check -l layout.tsv
	cat frags/000.frag frags/000.frag | dl-frag check -l layout.tsv
	dl-frag check -e m frags/local.frag && return 1
	refused 1 'tensor "lm_head.weight" differs at element 0' \
		dl-frag check -e new m
	dl-frag check -e new -t 1 m
	dl-frag plan -n 2 --skip '*norm*' m >other
	refused 1 "is of another layout" dl-frag check -l other frags/000.frag
	dl-join -b m frags/000.frag | dl-frag check -l other -
	sed 's/64x8\t512/8x64\t512/' layout.tsv >other
	refused 1 "has another shape" dl-frag check -l other m
	refused 65 "line 5: unknown rule" dl-frag check -l <(sed 's/rda/rdb/' layout.tsv) m
}

# Tensor, hash: what b2sum says of each tensor's bytes in a one-record file.
hash_tensors() {
	base=$(($(od -A n -t u8 -N 8 "$1") + 8))
	dl-frag show -j "$1" | grep -o '"name":"[^"]*".[^}]*' |
		sed 's/"name":"\([^"]*\)".*"offset":\(.*\),"bytes":\(.*\)/\1 \2 \3/' |
		while read -r name offset bytes; do
			printf '%s\t%s\n' "$name" "$(tail -c +$((base + offset + 1)) \
				"$1" | head -c "$bytes" | b2sum -l 256 | cut -d ' ' -f 1)"
		done
}

@test "show -H tells what is the same, however it is cut" {
	make_llama
	hash_tensors m | sort >want
	[ "$(wc -l <want)" -eq 9 ]
	dl-frag show -H m | grep -v '^#' | cut -f 1,7 | sort | cmp - want
	cat frags/*.frag | dl-frag show -H | grep -v '^#' | cut -f 1,7 | sort |
		cmp - want
	hash=$(sed -n 's/lm_head.weight\t//p' want)
	dl-frag show -Hj frags/*.frag | grep -q "\"hash\":\"$hash\""
	head -c 5000 m >cut
	refused 65 "cut: data end" dl-frag show -H cut
}

@test "show reads headers of files and pipes alike" {
	make_llama
	dl-frag show frags/*.frag >a
	[ "$(grep -vc '^#' a)" -eq 9 ]
	[ "$(grep -c '^# record' a)" -eq 4 ]
	cat m | dl-frag show | sed 's/^\(# record.0.\)-/\1m/' >b
	dl-frag show m | cmp - b
	make_model 1 shards 2
	[ "$(dl-frag show shards | grep -c '^# record')" -eq 2 ]
	dl-frag show -j m | grep -q '"name":"lm_head.weight","dtype":"F32","shape":\[64,8\]'
	head -c 1000 m >cut
	refused 65 "cut: data end" dl-frag show cut
	head -c 1000 m | refused 65 "standard input" dl-frag show
}

@test "input without an end is refused at its first bad header" {
	make_llama
	ulimit -f 20480
	refused 65 "/dev/zero: record 0: " timeout 20 dl-frag check /dev/zero
	refused 65 "standard input: record 1: " timeout 20 dl-frag check \
		< <(cat m /dev/zero)
}

@test "what is no model is refused" {
	refused 66 "none: No such file" dl-frag plan none
	refused 64 "no command" dl-frag
	refused 64 "cut: no such command" dl-frag cut
	refused 64 "needs a layout" dl-frag split m
	mkdir empty
	refused 66 "empty: holds neither" dl-frag plan empty
	make_llama
	cat frags/*.frag >stream
	refused 65 "stream: not a model but 4 records" dl-frag plan stream
	make_model 1 shards 2
	sed 's/s1.safetensors/s0.safetensors/' shards/*.json >shards/x
	mv shards/x shards/model.safetensors.index.json
	refused 65 "which the index names, is not there" dl-frag plan shards
	sed 's/s0.safetensors/..\/m/' shards/*.json >shards/x
	mv shards/x shards/model.safetensors.index.json
	refused 65 "not a plain file name" dl-frag plan shards
}

# bytes_read COMMAND...: how many it read, its libraries among them.
bytes_read() {
	sh -c '"$@" >shown; sed -n "s/^rchar: //p" /proc/$$/io' sh "$@"
}

@test "show and plan of a model larger than memory read its header" {
	cat /proc/self/io >none 2>&1 || skip "no /proc/PID/io"
	make_model 1 m sparse 10000000000
	[ "$(stat -c %s m)" -ge 10000000000 ]
	for what in "show" "show -j" "plan -n 4"; do
		read=$(bytes_read dl-frag $what m)
		echo "$what: $read bytes"
		[ "$read" -lt 100000 ]
		grep -q embed_tokens.weight shown
	done
	# What reads more is seen to.
	make_model 1 m sparse 1000000
	[ "$(bytes_read dl-frag show -H m)" -ge 1000000 ]
}

@test "who looks at headers only keeps no pipe" {
	make_llama
	printf '\002\0\0\0\0\0\0\0{}' >empty
	export TMPDIR=$PWD/none
	cat m | dl-frag plan -n 3 | cmp - layout.tsv
	cat m | dl-frag check -l layout.tsv
	cat frags/*.frag empty | dl-frag check -l layout.tsv
	[ "$(cat empty m empty empty | dl-frag show | grep -c '^# rec')" -eq 4 ]
	# A record without data counts, too.
	refused 65 "standard input: not a model but 2 records" \
		dl-frag plan < <(cat m empty)
	refused 73 "$PWD/none/dl-" dl-frag check -e m < <(cat m)
	refused 65 "standard input: record 1: tensor \"lm_head.weight\": data end" \
		dl-frag check < <(cat m; head -c 2000 m)
	refused 65 "standard input: empty" dl-frag check < <(:)
}
