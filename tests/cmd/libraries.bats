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
