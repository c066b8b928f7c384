#!/usr/bin/env bats
#
# The commands of README.md, all in one shell and in order, as a reader would
# give them in a folder with text. What another test runs, or none can, stands
# after a line "<!-- not run: REASON -->". What they leave running is stopped.

# Lines of code, but for the demo's output and what is not run.
commands() {
	awk '
	/^## / { inside = /^## (Two commands|A tour)/ }
	/^<!-- not run: / { skip = 1; next }
	/^[^ ]/ { skip = skip && !said; said = 0 }
	inside && /^    / {
		said = 1
		if (!skip)
			print substr($0, 5)
	}' "$abs_top_srcdir/README.md"
}

# On this machine alone, at free ports, and with waits where a reader looks on for
# a while.
script() {
	echo 'set -ex; left=; trap "kill \$left" EXIT'
	commands | sed -e 's/dc1\.example\.org/127.0.0.1/' \
		-e 's/0\.0\.0\.0/127.0.0.1/' -e "s/4000/$1/; s/4001/$2/" \
		-e '/^dl-stat tape$/s/^/until grep -q merged tape; do sleep 0.1; done; /' \
		-e '/^dl-sync end.*2/s/^/until grep -q merged tape2; do sleep 0.1; done; /' \
		-e 's/ &$/ \& left="$! $left"/'
	cat <<-'END'
		set +e
		trap - EXIT
		for job in $left; do
			kill "$job" 2>/dev/null
			wait "$job"
			echo "$job: $?"
		done
	END
}

# One that nobody listens at.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

@test "the commands of README.md work" {
	cd "$BATS_TEST_TMPDIR"
	mkdir text
	cp "$abs_top_srcdir"/man/*.5 text
	script "$(free_port)" "$(free_port)" >script
	run sh script 3>&-
	echo "$output" | tail -n 40
	[ "$status" -eq 0 ]
	# Ended by itself, or stopped with or without work left to deliver.
	[ "$(grep -cE '^[0-9]+: (0|75|143)$' <<<"$output")" -eq \
		"$(grep -c 'left="' script)" ]
}
