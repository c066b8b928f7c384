#!/usr/bin/env bats
# Programs link what they always use: what takes long to start is loaded once
# there is work for it.

# needs PROGRAM: the libraries it names, without those of the compiler.
needs() {
	readelf -d "$abs_top_builddir/$1" |
		sed -n 's/.*NEEDED.*\[lib\([a-z]*\)\.so.*/\1/p' |
		grep -vx -e c -e m -e asan -e ubsan -e tsan -e pthread -e dl |
		sort | tr '\n' ' '
}

@test "programs link only what they use" {
	for program in frag join learn quant sim stat sync train; do
		[ "$(needs dl-$program)" = 'sodium zstd ' ]
	done
	[ "$(needs dl-key)" = 'sodium ' ]
}

# without LIBRARY PROGRAM [ARGUMENT...]: run where that one cannot be loaded.
without() {
	local name

	name=$(grep -ao "$1\.so[.0-9]*" "$abs_top_builddir/$2" | head -n 1)
	: >"$BATS_TEST_TMPDIR/$name"
	run env LD_LIBRARY_PATH="$BATS_TEST_TMPDIR" "${@:2}"
	[ "$status" -eq 69 ]
	[[ "$output" == *"$2: "*"$name: "* ]]
}

@test "a library that is missing is known before anything is made" {
	cd "$BATS_TEST_TMPDIR"
	dl-train init -q -L 1 -H 2 -d 16 -c 16 m
	seq 2000 >text
	without libopenblas dl-train run -q --steps 1 -o trained m text
	without libarchive dl-sync serve --store store --listen unix:s \
		--checkpoint checkpoints m/model.safetensors
	[ ! -e trained ]
	[ ! -e store ]
	[ ! -e checkpoints ]
}
