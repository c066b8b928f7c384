# shellcheck shell=sh
# For the examples: they read this in, to say what they do and check that it is
# so.
wrong=0

say() {
	printf '\n=== %s\n\n' "$*"
}

check() { # what, command...
	what=$1
	shift
	if "$@"; then
		echo "ok: $what"
	else
		echo "NOT OK: $what"
		wrong=1
	fi
}

wait_for() { # command...
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || exit 1
		sleep 0.1
	done
}

finds() { # pattern, file
	grep -q "$1" "$2"
}

less() { # a < b, of decimal numbers
	awk "BEGIN { exit !($1 < $2) }"
}

# Status 0 if every check held.
finish() {
	exit $wrong
}
