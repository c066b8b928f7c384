#!/usr/bin/env bats
# dl-quant: what is encoded comes back as near as the codec allows, and what
# cannot be encoded is named before anything is written.

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
}

codecs="f32 f16 bf16 int8 int4 fp4 int2 int1"

# record META TYPE PACK VALUE...: a record of one tensor w; META is JSON pairs.
record() {
	perl -e '($meta, $type, $pack, @v) = @ARGV; $n = @v;
		$data = pack "($pack)*", @v; $size = length $data;
		$meta = qq("__metadata__":{$meta},) if length $meta;
		$json = qq({$meta"w":{"dtype":"$type","shape":[$n],) .
			qq("data_offsets":[0,$size]}});
		$json .= " " x (-length($json) % 8);
		print pack("Q<", length $json), $json, $data' -- "$@"
}

make_delta() {
	"$abs_top_builddir/tests/tensor/make_model" 1 old llama
	"$abs_top_builddir/tests/tensor/make_model" 2 new llama
	dl-frag plan -n 3 old >layout.tsv
	dl-frag diff -l layout.tsv old new >delta
}

# refused CODE TEXT COMMAND...: it exits so, says so and writes nothing.
refused() {
	code=$1
	text=$2
	shift 2
	rm -f out
	run "$@"
	echo "$status: $output"
	[ "$status" -eq "$code" ]
	case $output in *"$text"*) ;; *) return 1 ;; esac
	[ ! -e out ]
}

@test "what was decoded encodes to the same bytes, in any number of records" {
	make_delta
	for codec in $codecs; do
		dl-quant -c $codec delta >coded
		dl-quant -d coded >decoded
		dl-quant -c $codec <decoded | cmp - coded
		# Names, shapes, types and metadata come back.
		dl-frag show delta | sed 's/\tdelta\t/\t/' >want
		dl-frag show decoded | sed 's/\tdecoded\t/\t/' | cmp - want
	done
	dl-quant -c f32 delta | dl-quant -d | cmp - delta
	dl-quant -d delta | cmp - delta
}

@test "deltas go through int8 to the model and back" {
	make_delta
	dl-quant -c int8 delta | dl-quant -d | dl-join -b old >joined
	dl-frag check -e new -t 0.001 joined
	run ! dl-frag check -e new joined
	# Encoded records are read as what they decode to.
	dl-quant -c int8 delta >coded
	dl-join -b old coded | cmp - joined
	dl-quant -d coded | dl-join -b old | cmp - joined
	dl-quant -c int4 old | dl-frag split -l layout.tsv | dl-join >nearly
	dl-quant -c int4 old | dl-quant -d | cmp - nearly
}

@test "tensors of every type and shape" {
	for seed in 1 2 3; do
		# Random bits hold NaN, and names that scales would take.
		"$abs_top_builddir/tests/tensor/make_model" $seed odd
		refused 65 'odd: tensor "' dl-quant -c int4 -o out odd
	done
	for type in F64:d F32:f; do
		record '"a":"b"' ${type%:*} ${type#*:} $(seq -9 9) >m
		for codec in f32 f16 bf16; do
			dl-quant -c $codec m | dl-quant -d | cmp - m
		done
	done
	record '' I32 l 1 2 3 >m
	dl-quant -c int4 m | dl-quant -d >n
	dl-frag check -e m n
	record '' F32 f >m
	for codec in $codecs; do
		dl-quant -c $codec m | dl-quant -d | cmp - m
	done
}

@test "a value that cannot be encoded is named" {
	record '' F32 f 1 2 nan >m
	refused 65 'm: tensor "w": element 2 is NaN' dl-quant -c int4 -o out m
	record '' F32 f 1 -inf nan >m
	refused 65 'tensor "w": element 1 is infinite' dl-quant -c f32 -o out m
	record '' F32 f 1 2 3 65520 >m
	refused 65 'element 3 is too large for F16' dl-quant -c f16 -o out m
	record '' F64 d 1e300 >m
	refused 65 'element 0 is too large for F32' dl-quant -c int4 -o out m
	record '' F32 L 2139095039 >m # the largest there is
	refused 65 'element 0 is too large for BF16' dl-quant -c bf16 -o out m
	for codec in int8 int4 fp4 int2 int1; do
		# A limited scale reaches less far, but to the same side.
		record '' F32 f 3.4e38 -3.4e38 3.3e38 -3.3e38 >m
		dl-quant -c $codec m >coded
		dl-quant -d coded >n
		dl-quant -c $codec n | dl-quant -d | cmp - n
		perl -e 'undef $/; @v = unpack "f<4", substr <STDIN>, -16;
			exit !($v[0] > 1e38 && $v[1] < -1e38 &&
				$v[2] > 1e38 && $v[3] < -1e38)' <n
	done
	record '' F32 f 1 >m
	record '' F32 f 1 inf >>m
	refused 65 'm: record 1: tensor "w"' dl-quant -c int4 -o out m
	run -65 --separate-stderr dl-quant -c int4 m
	[ -z "$output" ]
}

@test "what is encoded already, or badly, is refused" {
	make_delta
	dl-quant -c int4 delta >coded
	refused 65 "record 0: encoded already, as int4; dl-quant -d" \
		dl-quant -c int4 -o out coded
	sed 's/"dl.codec":"int4"/"dl.codec":"int5"/' coded >bad
	refused 65 'unknown codec "int5"' dl-quant -d -o out bad
	sed 's/"dl.block":"128"/"dl.block":"256"/' coded >bad
	refused 65 'one BF16 a block' dl-quant -d -o out bad
	record '' F32 f 7 >m
	dl-quant -c int4 m | perl -0pe 's/..(.)$/\x80\x7f$1/s' >bad
	refused 65 'tensor "w.scale": element 0 is inf, which is no scale' \
		dl-quant -d -o out bad
	dl-quant -c int4 m | perl -0pe 's/..(.)$/\x80\xbf$1/s' >bad
	refused 65 'tensor "w.scale": element 0 is -1, which is no scale' \
		dl-quant -d -o out bad
	refused 66 nothing dl-quant -c int4 -o out nothing
	refused 64 "either -c CODEC or -d" dl-quant -o out m
	refused 64 "either -c CODEC or -d" dl-quant -d -c int4 -o out m
	refused 64 "unknown codec" dl-quant -c int3 -o out m
	refused 64 "power of two" dl-quant -c int4 -b 48 -o out m
	refused 64 "block" dl-quant -c int4 -b 2048 -o out m
	refused 64 "-d takes none" dl-quant -d -r -o out m
}

# One value of 0.3 beside one of 7: int4 has steps of 1.
@test "with an error file nothing is lost over rounds" {
	record '"dl.fragment":"0"' F32 f 7 0.3 >m
	for round in 1 2 3 4 5 6 7 8 9 10; do
		dl-quant -c int4 -e error m | dl-quant -d |
			tail -c 8 | od -A n -t f4 >>sum
	done
	awk '{ a += $1; b += $2 } END { exit !(a == 70 && b == 3) }' sum
	[ "$(tail -c 4 error | od -A n -t f4 | awk '{ print $1 < 1e-5 }')" = 1 ]
	for round in 1 2 3 4 5 6 7 8 9 10; do
		dl-quant -c int4 m | dl-quant -d |
			tail -c 8 | od -A n -t f4 >>without
	done
	awk '{ b += $2 } END { exit !(b == 0) }' without
}

@test "an error file keeps one sender's fragments apart" {
	make_delta
	dl-quant -c int2 -e error -o all delta
	dl-frag show error | grep -c 'dl.kind=error' | grep -qx 3
	dl-frag diff -l layout.tsv old old >still
	dl-frag split -l layout.tsv -o parts old
	cp error before
	# A fragment by itself: the others' errors stay as they are.
	cp parts/001.frag one
	dl-quant -c int2 -e error -o part one
	dl-frag show error | grep '^#' >now
	dl-frag show before | grep '^#' >then
	sed 's/before/error/' then | cmp - now
	run ! cmp error before
	cat one one >two
	refused 65 "record 1: of the same fragment as a record before it" \
		dl-quant -c int2 -e error -o out two
	sed 's/"dl.layout":"./"dl.layout":"x/' one >other
	refused 65 "error: record 1 is of another dl.layout" \
		dl-quant -c int2 -e error -o out other
	record '"dl.fragment":"1"' F32 f 1 >other
	refused 65 "error: record 1 is of another dl.layout" \
		dl-quant -c int2 -e error -o out other
	refused 65 'one: record 0 is not of kind "error"' \
		dl-quant -c int2 -e one -o out one
	record '"dl.kind":"error"' F32 f 1 >small
	record '' F32 f 1 2 >other
	refused 65 'small: tensor "w" has another shape' \
		dl-quant -c int2 -e small -o out other
	record '"dl.kind":"error"' F32 f 1 nan >small
	refused 65 'other: small: tensor "w": element 1 is not finite' \
		dl-quant -c int2 -e small -o out other
	record '"dl.kind":"error"' F32 f 3e38 1 >small
	record '' F32 f 3e38 2 >other
	refused 65 'tensor "w": element 0 is infinite, with what is owed' \
		dl-quant -c int2 -e small -o out other
	# A refusal leaves the file as it was.
	cp error before
	record '"dl.fragment":"9"' F32 f nan >bad
	refused 65 NaN dl-quant -c int2 -e error -o out bad
	cmp error before
	[ -z "$(ls | grep tmp)" ]
	refused 64 '-o and -e: both are x' \
		dl-quant -c int2 -o x -e ./x delta
	refused 64 '-e: what is owed is kept in a file' \
		dl-quant -c int2 -o out -e - delta
	[ ! -e x ]
}

@test "by chance, and the same chance with the same seed" {
	make_delta
	dl-quant -c int4 -r -s 1 delta >a
	dl-quant -c int4 -r -s 1 <delta | cmp - a
	run ! cmp a <(dl-quant -c int4 -r -s 2 delta)
	run ! cmp a <(dl-quant -c int4 delta)
	dl-quant -d a | dl-join -b old >joined
	dl-frag check -e new -t 0.05 joined
}

@test "every CPU level gives the same bytes" {
	make_delta
	for codec in $codecs; do
		dl-quant -c $codec delta >want
		dl-quant -d want >back
		for level in baseline avx2 avx512; do
			DL_CPU=$level dl-quant -c $codec delta | cmp - want
			DL_CPU=$level dl-quant -d want | cmp - back
		done
	done
}

@test "-v tells bits, error and what zstd would gain" {
	record '' F32 f 7 1 2 3 >m
	run --separate-stderr dl-quant -c int4 -v -o out m
	[ "$status" -eq 0 ]
	echo "$stderr"
	[ "${stderr_lines[0]}" = \
		$'# record\tname\tdtype\telements\tbits\terror\tzstd' ]
	[[ ${stderr_lines[1]} == $'0\tw\tF32\t4\t8.000\t0.000000\t0.'* ]]
	[ "${#stderr_lines[@]}" -eq 2 ]
}

@test "zstd in and out, and sharded models" {
	make_delta
	dl-quant -c int4 delta >want
	dl-quant -c int4 -z delta >packed
	zstd -qdc packed | cmp - want
	dl-quant -d packed | cmp - <(dl-quant -d want)
	mkdir shards
	"$abs_top_builddir/tests/tensor/make_model" 1 shards/a llama
	cat >shards/model.safetensors.index.json <<-END
	{"weight_map":{"model.norm.weight":"a"}}
	END
	dl-quant -c int4 shards | cmp - <(dl-quant -c int4 shards/a)
}
