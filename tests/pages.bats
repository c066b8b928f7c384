#!/usr/bin/env bats
#
# What programs and man pages promise each other.
#
# Examples are run. In a page's EXAMPLES section, a block
#
#	.Bd -literal -offset indent
#	$ dl-frag plan model.safetensors \e
#	> -n 2 >layout.tsv
#	.Ed
#
# holds commands (lines that begin with "$ ", going on in lines that begin with
# "> ") and what they print (other lines, not compared). All commands of a page
# run in order in one shell, in a scratch folder, and each must succeed. The
# folder holds model.safetensors and new.safetensors, two small language models
# of equal shapes, and text.txt. A block after a line
#
#	.\" not run: REASON
#
# is left out, for what needs another machine or a long time.

load_pages() {
	pages=$(ls "$abs_top_srcdir"/man/*.[1-8])
	[ -n "$pages" ]
}

load_programs() {
	programs=$(cd "$abs_top_builddir" && ls | grep -x 'dl-[a-z]*')
	[ -n "$programs" ]
}

# Puts all white space into single spaces.
squeeze() {
	tr -s ' \n' '  ' | sed 's/^ //; s/ $//'
}

# The SYNOPSIS of a page as a reader sees it.
synopsis() {
	mandoc -T ascii -O width=1000 "$1" | sed "s/.\x08//g" |
		sed -n '/^SYNOPSIS/,/^[A-Z]/p' | grep '^ ' | squeeze
}

# The usage lines that -h prints: those before the first option.
usage() {
	"$1" -h | awk '/^usage: / { sub(/usage: /, ""); print; next }
		/^       / { print; next } { exit }' | squeeze
}

# The short options in the usage lines of a program or of one of its commands, and
# the long ones that -h says they are for any of them, a line each:
# "-n fragments=? rows=?", where ? stands for an argument.
shorts() {
	"$1" -h | awk -v program="$1" -v command="${2-}" '
	/^usage: / { sub(/^usage: /, "       "); usages = 1 }
	usages && /^       / {
		if ($1 == program)
			mine = command == "" || $2 == command
		if (mine)
			text = text " " $0
		next
	}
	{
		usages = 0
		while (match($0, /-[a-zA-Z], --[a-z-]+(\[?[= ][A-Za-z]+)?/)) {
			word = substr($0, RSTART, RLENGTH)
			$0 = substr($0, RSTART + RLENGTH)
			short = substr(word, 1, 2)
			word = substr(word, 7)
			sub(/\[?[= ].*/, "=?", word)
			long[short] = long[short] " " word
		}
	}
	END {
		gsub(/[][|]/, " & ", text)
		m = split(text, word, " ")
		for (i = 1; i <= m; i++) {
			if (word[i] !~ /^-[a-zA-Z]+$/)
				continue
			for (j = 2; j <= length(word[i]); j++)
				used["-" substr(word[i], j, 1)]
		}
		for (short in used)
			print short long[short]
	}'
}

# The commands that a program has, from its usage lines.
commands() {
	"$1" -h | sed -n "s/^.* *$1 \\([a-z]\\{1,\\}\\) .*/\\1/p" | sort -u
}

# The commands of a page's examples, as a script.
examples() {
	awk '
	/^\.Sh / { inside = $2 == "EXAMPLES" }
	/^\.\\" not run:/ { skip = 1 }
	/^\.Bd -literal/ { block = inside && !skip; skip = 0 }
	/^\.Ed/ { block = 0 }
	{ command = block && (/^[$] / || (command && /^> /)) }
	command { print substr($0, 3) }
	' "$1" | sed 's/\\e/\\/g; s/\\&//g; s/\\(aq/'"'"'/g; s/\\-/-/g'
}

make_model() {
	"$abs_top_builddir/tests/tensor/make_model" "$@"
}

@test "pages are clean" {
	load_pages
	run mandoc -T lint -W warning $pages
	echo "$output"
	[ "$status" -eq 0 ]
	[ -z "$output" ]
}

@test "every program has a page" {
	load_programs
	missing=
	for program in $programs; do
		[ -e "$abs_top_srcdir/man/$program.1" ] ||
			missing="$missing $program"
	done
	echo "without a page:$missing"
	[ -z "$missing" ]
}

@test "SYNOPSIS is what -h says" {
	load_programs
	failed=
	for program in $programs; do
		page=$abs_top_srcdir/man/$program.1
		want=$(usage "$program")
		got=$(synopsis "$page")
		[ -n "$got" ] && [ "$want" = "$got" ] && continue
		printf '%s\n  -h:   %s\n  page: %s\n' "$program" "$want" "$got"
		failed=1
	done
	[ -z "$failed" ]
}

@test "pages of programs have EXAMPLES and EXIT STATUS" {
	load_programs
	for program in $programs; do
		page=$abs_top_srcdir/man/$program.1
		echo "$page"
		grep -q '^\.Sh EXAMPLES' "$page"
		grep -q '^\.Sh EXIT STATUS' "$page"
		[ -n "$(examples "$page")" ] || grep -q '^\.\\" not run:' "$page"
	done
}

@test "-V names the program and an unknown option is misuse" {
	load_programs
	for program in $programs; do
		run "$program" -V
		echo "$output"
		[ "$status" -eq 0 ]
		[ "${output#"$program (dl-tools) "}" != "$output" ]
		for command in '' $(commands "$program"); do
			# shellcheck disable=SC2086 # none or one
			run "$program" $command --no-such-option
			echo "$program $command: $status, ${lines[0]}"
			[ "$status" -eq 64 ]
			[[ ${lines[0]} == *"$program: "*no-such-option* ]]
			help="$program${command:+ $command} -h"
			[ "${lines[1]}" = "$program: try '$help'" ]
			[ "${#lines[@]}" -eq 2 ]
			$help >/dev/null
		done
	done
}

# What -h says, with all usages as far in as the others.
told() {
	"$@" -h | sed 's/^usage:/      /'
}

@test "-h of a command is what the program's says of that command" {
	load_programs
	cd "$BATS_TEST_TMPDIR"
	for program in $programs; do
		for command in $(commands "$program"); do
			told "$program" >all
			told "$program" "$command" >own
			echo "$program $command, and not said by $program:"
			! grep -vxFf all own || false
			usages=$(grep "^       $program $command\( \|$\)" all)
			[ -n "$usages" ]
			[ "$(grep "^       $program " own)" = "$usages" ]
			cmp <(tail -n 1 all) <(tail -n 1 own)
		done
	done
}

@test "every short option has a long name in -h, and it works" {
	load_programs
	for program in $programs; do
		commands=$(commands "$program")
		for command in ${commands:-''}; do
			while read -r short longs; do
				echo "$program $command: $short is $longs"
				works=
				for long in $longs; do
					# shellcheck disable=SC2086 # none or one
					run "$program" $command "--$long" -h
					[[ $output == *"option '--"* ]] ||
						works=1
				done
				[ -n "$works" ]
			done < <(shorts "$program" $command)
		done
	done
}

@test "the examples of pages work" {
	load_pages
	failed=
	for page in $pages; do
		scratch=$BATS_TEST_TMPDIR/${page##*/}
		mkdir "$scratch"
		make_model 1 "$scratch/model.safetensors" llama
		make_model 2 "$scratch/new.safetensors" llama
		for i in 1 2 3 4; do
			cat "$abs_top_srcdir/README.md"
		done >"$scratch/text.txt"
		examples "$page" >"$scratch.sh"
		(cd "$scratch" && sh -ex "$scratch.sh") </dev/null \
			>"$scratch.log" 2>&1 && continue
		echo "${page##*/}: an example failed:"
		tail -n 5 "$scratch.log"
		failed=1
	done
	[ -z "$failed" ]
}
