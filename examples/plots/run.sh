#!/bin/sh
# A run as figures, drawn by gnuplot from its tape or, with a link, from its
# syncer, each from a table beside it:
#
#	examples/plots/run.sh tape [folder]
#	examples/plots/run.sh unix:run.sock [folder]
set -eu

scripts=$(dirname "$0")
out=${2:-figures}
mkdir -p "$out"

case $1 in
unix:* | tcp:* | exec:*) from=--from ;;
*) from=-- ;;
esac

dl-stat -t -T history $from "$1" >"$out/history.tsv"
dl-stat -t -T timeline $from "$1" >"$out/timeline.tsv"
for figure in history/loss history/rates timeline/lanes; do
	table=$out/${figure%/*}.tsv
	name=${figure#*/}
	gnuplot -c "$scripts/run-$name.gp" "$table" "$out/$name.svg"
	echo "$out/$name.svg" >&2
done
