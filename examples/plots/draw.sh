#!/bin/sh
# The figures of the paper on Decoupled DiLoCo (arXiv 2604.21428), computed by
# dl-sim and drawn by gnuplot, each from a table beside it:
#
#	examples/plots/draw.sh [folder]
#
# Without gnuplot there are the tables only.
set -eu

scripts=$(dirname "$0")
out=${1:-figures}
mkdir -p "$out"

say() {
	echo "$out/$1.tsv" >&2
}

draw() { # figure
	if command -v gnuplot >/dev/null; then
		gnuplot -c "$scripts/$1.gp" "$out/$1.tsv" "$out/$1.svg"
	fi
}

say goodput
dl-sim goodput --tsv >"$out/goodput.tsv"
draw goodput

# Eight links a decade.
say bandwidth
links=$(awk 'BEGIN {
	for (i = 0; i <= 32; i++)
		printf "%s%.0fkbit", i ? "," : "", 100e3 * 10 ^ (i / 8)
}')
dl-sim bandwidth --tsv --link "$links" >"$out/bandwidth.tsv"
draw bandwidth
