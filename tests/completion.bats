#!/usr/bin/env bats
# What the shells offer, beside what each program's -h says.

setup() {
	source "$abs_top_srcdir/completion/dl-tools"
	cd "$BATS_TEST_TMPDIR"
	mkdir folder
	touch file
}

compopt() { # which needs a real completion
	:
}

# offered WORD...: what bash offers for the last of them; it parts words at = and
# at :, as below.
offered() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	dl_tools_bash "$1" "${@: -1}" "${COMP_WORDS[COMP_CWORD - 1]}"
	echo "$* => ${COMPREPLY[*]}" >&2
	echo "${COMPREPLY[*]}"
}

# in_zsh WORD...: what zsh offers; files are <_files>.
in_zsh() {
	zsh -f -c '
	compadd() { [[ $1 != -S ]] || shift 2; shift; print -rn -- "$@ " }
	_files() { print -n "<_files $*> " }
	_normal() { print -n "<$CURRENT: $words> " }
	compset() { [[ $words[CURRENT] == ${~2}* ]] }
	fpath=($1 $fpath); shift
	autoload -U _dl-tools
	words=("$@") CURRENT=$#
	_dl-tools' zsh "$BATS_TEST_TMPDIR" "$@"
}

# options PROGRAM [COMMAND]: the long options of its usage, and of lines that
# explain those of it that are short.
options() {
	local usage short long

	usage=$("$1" -h | awk -v program="$1" -v command="${2-}" '
		/^usage: / { usage = 1; sub(/usage:/, "      ") }
		!/^       / { usage = 0 }
		usage && $1 == program { mine = !command || $2 == command }
		usage && mine')
	grep -oE -e '--[a-z][a-z-]*' <<<"$usage"
	"$1" -h | grep -oE -e '-[a-zA-Z], --[a-z-]+' |
		while read -r short long; do
			[[ ! $usage =~ [[\ ]-[a-zA-Z]*${short:1:1} ]] ||
				echo "$long"
		done
	printf '%s\n' --help --version --quiet --verbose
}

@test "all long options of all commands are offered, and no others" {
	for program in $(sed -n '1s/#compdef //p' \
		"$abs_top_srcdir/completion/dl-tools"); do
		commands=$("$program" -h |
			sed -n "s/^.* *$program \\([a-z]\\{1,\\}\\) .*/\\1/p" |
			sort -u | xargs)
		for command in ${commands:-''}; do
			wanted=$(options "$program" ${command:+"$command"})
			offered=$(offered "$program" ${command:+"$command"} --)
			diff <(sort -u <<<"$wanted") \
				<(tr ' ' '\n' <<<"$offered" | sort -u)
		done
		[ -z "$commands" ] || [ "$(offered "$program" '' |
			xargs -n 1 | sort | xargs)" = "$commands" ]
	done
}

@test "every program has its completion" {
	for program in $(cd "$abs_top_builddir" && ls | grep -x 'dl-[a-z]*'); do
		complete -p "$program"
		grep "^#compdef.* $program\\b" \
			"$abs_top_srcdir/completion/dl-tools"
	done
}

@test "words that options want" {
	[ "$(offered dl-sync serve --global int)" = 'int8 int4 int2 int1' ]
	[ "$(offered dl-sync serve --global = f)" = 'f32 f16 fp4' ]
	[ "$(offered dl-quant -c b)" = bf16 ]
	[ "$(offered dl-quant --codec b)" = bf16 ]
	[ "$(offered dl-sync serve --late '')" = 'drop next now' ]
	[ "$(offered dl-learn --join p)" = peers ]
	[ "$(offered dl-learn --heartbeat '')" = '' ]
	[ "$(offered dl-stat -T f)" = fragments ]
}

@test "files, folders, links and trainers" {
	[ "$(offered dl-sync serve --store f)" = folder ]
	[ "$(offered dl-sync serve --tape f | xargs -n 1 | sort | xargs)" = \
		'file folder' ]
	[ "$(offered dl-frag show fi)" = file ]
	[ "$(offered dl-learn u)" = unix: ]
	[ "$(offered dl-learn unix : fi)" = file ]
	[ "$(offered dl-sync end t)" = tcp: ]
	[[ $(offered dl-learn unix:s -- dl-tra) == *dl-train* ]]
	[ "$(offered dl-learn unix:s -- dl-train run --hold)" = --hold-out ]
}

@test "zsh" {
	command -v zsh || skip "there is no zsh"
	cp "$abs_top_srcdir/completion/dl-tools" _dl-tools
	[[ " $(in_zsh dl-sync serve --) " == *' --store '*' --listen '* ||
		" $(in_zsh dl-sync serve --) " == *' --listen '*' --store '* ]]
	[ "$(in_zsh dl-sync serve --late '')" = 'drop next now ' ]
	[ "$(in_zsh dl-sync serve --late=)" = 'drop next now ' ]
	[ "$(in_zsh dl-sync serve --store '')" = '<_files -/> ' ]
	[ "$(in_zsh dl-sync end unix:)" = '<_files > ' ]
	[ "$(in_zsh dl-frag split '')" = '<_files > ' ]
	[ "$(in_zsh dl-learn unix:s -- dl-train run --)" = \
		'<3: dl-train run --> ' ]
	[[ $(in_zsh dl-key '') == *gen* ]]
}
