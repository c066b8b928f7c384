# Time to finish against extra capacity that comes and goes, relative to none,
# a line for each system, and crosses where the paper's table is (arXiv
# 2604.21428). The table has tabs: system, extra capacity in percent, relative
# time; draw.sh makes it by dl-sim fleet.
#
#	gnuplot -c scavenging.gp scavenging.tsv scavenging.svg

$paper << END
0	1.00	1.00
25	1.07	0.90
50	1.09	0.83
100	1.02	0.75
300	0.80	0.62
END

table = ARG1

set terminal svg size 800,500 background "white"
set output ARG2
set datafile separator "\t"
set xlabel "extra capacity, percent"
set ylabel "relative time to finish"
set xrange [-5:305]
set yrange [0.5:1.2]
set grid
set key bottom left
plot for [system in "data-parallel decoupled"] table using \
	2:(strcol(1) eq system ? $3 : NaN) with linespoints title system, \
	for [i = 2:3] $paper using 1:i with points pointtype 2 \
	linecolor "black" title (i == 2 ? "the paper" : "")
