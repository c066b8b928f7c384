# Goodput against chips, a line for each system and number of learners, and
# crosses where the paper's table is (arXiv 2604.21428):
#
#	dl-sim goodput --tsv >goodput.tsv
#	gnuplot -c goodput.gp goodput.tsv goodput.svg

$paper << END
150e3	72	88	98
300e3	57	80	96
600e3	38	69	94
1.2e6	27	58	88
2.4e6	18	40	80
END

table = ARG1
lines = system(sprintf("awk -F '\t' '!/^#/ { print $1 \"/\" $3 }' '%s' | \
	sort -u", table))
name(line) = line[1:strstrt(line, "/") - 1]
learners(line) = int(line[strstrt(line, "/") + 1:*])
title(line) = sprintf("%s, %d learner%s", name(line), learners(line), \
	learners(line) == 1 ? "" : "s")

set terminal svg size 800,500 background "white"
set output ARG2
set datafile separator "\t"
set logscale x
set xtics ("10k" 1e4, "30k" 3e4, "75k" 75e3, "150k" 150e3, "300k" 300e3, \
	"600k" 600e3, "1.2M" 1.2e6, "2.4M" 2.4e6, "5M" 5e6)
set xlabel "chips"
set ylabel "goodput, percent"
set yrange [0:100]
set grid
set key bottom left
plot for [line in lines] table using \
	2:(strcol(1) eq name(line) && $3 == learners(line) ? $4 : NaN) \
	with linespoints title title(line), \
	for [i = 2:4] $paper using 1:i with points pointtype 2 \
	linecolor "black" title (i == 2 ? "the paper" : "")
