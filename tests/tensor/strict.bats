# dl-frag check refuses every malformed record of the table with 65 and the
# fact.

setup_file() {
	mkdir "$BATS_FILE_TMPDIR/bad"
	"$abs_top_builddir/tests/tensor/strict_test" \
		--write "$BATS_FILE_TMPDIR/bad"
}

# Prints what is wrong about the answer to file $1, if anything.
fault() {
	local said code=0 fact
	said=$(dl-frag check "$1" 2>&1 >/dev/null) || code=$?
	fact=$(<"${1%.bad}.fact")
	[ "$code" = 65 ] || echo "${1##*/}: exit $code"
	[[ $said == "dl-frag: "*"$fact"* ]] || echo "${1##*/}: says $said"
	[[ $said != *$'\n'* ]] || echo "${1##*/}: says more than a line"
}

@test "every malformed record is refused with 65 and the fact" {
	local n=0 bad faults=
	for bad in "$BATS_FILE_TMPDIR"/bad/*.bad; do
		faults+=$(fault "$bad")
		n=$((n + 1))
	done
	echo "$n records; $faults"
	[ "$n" -gt 60 ]
	[ -z "$faults" ]
}

@test "through a pipe too" {
	local bad name
	for name in aliased name-twice-escaped truncated-050 length-2^63; do
		bad=$BATS_FILE_TMPDIR/bad/$name.bad
		run dl-frag check - <"$bad"
		[ "$status" = 65 ]
		[[ $output == *"$(<"${bad%.bad}.fact")"* ]]
	done
}
