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

# Eight learners, and more for half of the time that the eight take alone, each
# for 56 steps on average. Data-parallel training stands still for 15 steps
# whenever some come or go.
say scavenging
relative() { # system, half of that time, option...
	system=$1 from=$2
	shift 2
	for extra in 0 2 4 8 24; do
		dl-sim fleet -t 4s --tokens 16M \
			--extra $extra:$from:225s:1s "$@" --tsv |
			awk -F '\t' -v extra=$extra '
			sub(/^# /, "") { for (i = 1; i <= NF; i++) at[$i] = i }
			$1 == "total" { print extra, $at["seconds"] }'
	done | awk -v name="$system" '
		NR == 1 { alone = $2 }
		{ printf "%s\t%.1f\t%.3f\n", name, 100 * $1 / 8, $2 / alone }'
}
{
	printf '# system\textra\trelative\n'
	relative data-parallel 4385s -n 1 -H 1 --tau 0 --wait --grace 1h \
		--regroup 1m:35s
	relative decoupled 4000s
} >"$out/scavenging.tsv"
draw scavenging
