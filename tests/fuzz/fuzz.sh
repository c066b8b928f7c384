#!/bin/sh
# fuzz.sh SECONDS TARGET...: runs each target from the folder of a build for
# fuzzing, and prints its executions and how many edges it covered. What it
# found new stays in work/TARGET, a log in TARGET.log. The status is 1 when a
# target has a finding, whose input is named.
set -u
source=$(dirname "$0")
seconds=$1 status=0
shift
printf '#target\texecutions\tedges\tfinding\n'
for target; do
	mkdir -p "work/$target"
	case $target in
	checkpoint | input) memory=160 ;; # the window of a zstd frame
	*) memory=64 ;;
	esac
	set -- -max_total_time="$seconds" -max_len=4096 -timeout=20 \
		-rss_limit_mb=1024 -malloc_limit_mb=$memory -print_final_stats=1
	[ ! -e "$source/dict/$target" ] || set -- "$@" \
		-dict="$source/dict/$target"
	log=$target.log finding=-
	if ! tests/fuzz/fuzz_"$target" "$@" -artifact_prefix="$PWD/$target-" \
		"work/$target" "$source/corpus/$target" >"$log" 2>&1; then
		status=1
		finding=$(sed -n 's/.*written to //p' "$log")
		: "${finding:=see $PWD/$log}"
	fi
	printf '%s\t%s\t%s\t%s\n' "$target" \
		"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
		"$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)" \
		"$finding"
done
exit $status
