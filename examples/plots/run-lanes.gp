# What each learner did when.
#
#	dl-stat -t -T timeline tape >timeline.tsv
#	gnuplot -c run-lanes.gp timeline.tsv lanes.svg

table = ARG1
lanes = int(system(sprintf( \
	"awk -F '\t' '!/^#/ && $2 > n { n = $2 } END { print n + 1 }' '%s'", \
	table)))

set terminal svg size 900,80 + 22 * lanes background "white"
set output ARG2
set datafile separator "\t"
set xlabel "seconds"
set yrange [lanes - 0.4:-0.6]
set ytics scale 0
set grid xtics
set key outside top center horizontal
states = "training joining stalled away gone"
colours = "#3f86cf #a9cdf0 #e5a52e #cf4457 #d9dee5"
plot for [i = 1:5] table using \
	(strcol(5) eq word(states, i) ? $3 : NaN):2:3:4:($2 - 0.35):($2 + 0.35):ytic(1) \
	with boxxyerror fillstyle solid noborder linecolor rgb word(colours, i) \
	title word(states, i)
