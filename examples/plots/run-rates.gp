# Participation and goodput over time, and traffic below them.
#
#	dl-stat -t -T history tape >history.tsv
#	gnuplot -c run-rates.gp history.tsv rates.svg

set terminal svg size 800,600 background "white"
set output ARG2
set datafile separator "\t"
set datafile missing "-"
set grid
set xlabel "seconds"
set multiplot layout 2,1
set ylabel "percent"
set yrange [0:105]
set key bottom right
share(part, all) = all > 0 ? 100.0 * part / all : NaN
plot ARG1 using 1:(share($11, $10)) with lines title "participation", \
	ARG1 using 1:(share($7, $8)) with lines title "time trained"
set ylabel "bytes a second"
set yrange [0:*]
set format y "%.1s%cB"
set key top right
width = real(system(sprintf("awk 'NR == 3 { print $1 }' '%s'", ARG1)))
plot ARG1 using 1:($12 / width) with lines title "up", \
	ARG1 using 1:($13 / width) with lines title "down"
unset multiplot
