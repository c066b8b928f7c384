#!/usr/bin/env bats
# Programs link what they use, and load nothing else when they start.

# needs PROGRAM: the libraries it names, without those of the compiler.
needs() {
	readelf -d "$abs_top_builddir/$1" |
		sed -n 's/.*NEEDED.*\[lib\([a-z]*\)\.so.*/\1/p' |
		grep -vx -e c -e m -e asan -e ubsan -e tsan -e pthread -e dl |
		sort | tr '\n' ' '
}

@test "programs link only what they use" {
	for program in frag quant sim stat learn train; do
		[ "$(needs dl-$program)" = 'sodium zstd ' ]
	done
	for program in join sync; do
		[ "$(needs dl-$program)" = 'archive sodium zstd ' ]
	done
	[ "$(needs dl-key)" = 'sodium ' ]
}
