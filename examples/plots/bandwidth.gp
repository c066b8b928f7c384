# Compute utilisation against the bandwidth of a site's link, a line for each
# system and codec: as the paper counts it, exchanges having the link for
# themselves, and dashed when they also wait for each other.
#
#	dl-sim bandwidth --tsv --link 100Mbit,300Mbit,1Gbit,3Gbit >links.tsv
#	gnuplot -c bandwidth.gp links.tsv bandwidth.svg

table = ARG1
lines = system(sprintf("awk -F '\t' '!/^#/ { print $1 \"/\" $2 }' '%s' | \
	sort -u", table))
name(line) = line[1:strstrt(line, "/") - 1]
codec(line) = line[strstrt(line, "/") + 1:*]
of(line, value) = strcol(1) eq name(line) && strcol(2) eq codec(line) \
	? value : NaN

set terminal svg size 800,500 background "white"
set output ARG2
set datafile separator "\t"
set logscale x
set format x "%g"
set xlabel "Gbit/s of a site, each way"
set ylabel "time spent on steps, percent"
set yrange [0:100]
set grid
set key bottom right
plot for [i = 1:words(lines)] table using 4:(of(word(lines, i), $5)) \
	with lines linecolor i title \
	sprintf("%s, %s", name(word(lines, i)), codec(word(lines, i))), \
	for [i = 1:words(lines)] table using 4:(of(word(lines, i), $6)) \
	with lines linecolor i dashtype 2 title ""
