# Loss against tokens: the mean of all learners, and their range.
#
#	dl-stat -t -T history tape >history.tsv
#	gnuplot -c run-loss.gp history.tsv loss.svg

set terminal svg size 800,400 background "white"
set output ARG2
set datafile separator "\t"
set datafile missing "-"
set xlabel "tokens"
set ylabel "loss, nats"
set format x "%.1s%c"
set grid
set style fill transparent solid 0.2 noborder
sum = 0
made(n) = (sum = sum + n)
plot ARG1 using (made($2)):5:6 with filledcurves linecolor "#2f6fbf" \
	title "from the least to the most", \
	sum = 0, ARG1 using (made($2)):4 with lines linewidth 2 \
	linecolor "#2f6fbf" title "mean"
