#!/usr/bin/env bats
#
# dl-key: keys in files and pipes.
bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR"
	umask 022
}

# RFC 7748, 6.1: Alice's.
secret=dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=
public=hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=

is_key() {
	[ "$(wc -c <"$1")" -eq 45 ]
	grep -qxE '[A-Za-z0-9+/]{43}=' "$1"
}

# fails CODE TEXT COMMAND...: it does, with that in its one line.
fails() {
	code=$1 text=$2
	shift 2
	run -"$code" "$@"
	echo "$output"
	[[ ${lines[0]} == "dl-key: "*"$text"* ]]
}

@test "gen writes one new line each time" {
	umask 077
	dl-key gen >a 2>said
	dl-key gen >b
	is_key a
	is_key b
	run -1 cmp -s a b
	[ ! -s said ]
}

@test "pub prints the public key" {
	[ "$(printf %s "$secret" | dl-key pub)" = "$public" ]
	[ "$(echo "$secret" | dl-key pub -)" = "$public" ]
	(umask 077 && echo "$secret" >key)
	[ "$(dl-key pub key)" = "$public" ]
	[ "$(dl-key pub <key)" = "$public" ]
	[ "$(dl-key pub /dev/fd/7 7<key)" = "$public" ]
	[ "$(dl-key pub <(cat key))" = "$public" ]
}

@test "gen -o makes a file of mode 0600, whatever the umask" {
	for mask in 000 022 077 777; do
		(umask $mask && dl-key gen -o key.$mask)
		[ "$(stat -c %a key.$mask)" = 600 ]
		is_key key.$mask
		dl-key pub key.$mask
	done
	[ "$(echo key.*)" = "key.000 key.022 key.077 key.777" ]
}

@test "gen -o replaces nothing" {
	echo precious >file
	mkdir folder
	ln -s nowhere link
	for name in file folder link; do
		fails 73 "$name: is there already" dl-key gen -o "$name"
	done
	[ "$(cat file)" = precious ]
	[ ! -e nowhere ]
	fails 73 "no/such/folder: No such file" dl-key gen -o no/such/folder
	[ "$(echo *)" = "file folder link" ]
}

@test "a full disk leaves no file behind" {
	[ -w /dev/full ] || skip "no /dev/full"
	run -74 sh -c 'dl-key gen >/dev/full'
	run -74 sh -c "echo $secret | dl-key pub >/dev/full"
	(ulimit -f 0 && trap '' XFSZ && run dl-key gen -o key &&
		[ "$status" -eq 73 ])
	[ -z "$(ls)" ]
}

@test "gen warns when others could read what the shell made" {
	run -0 --separate-stderr sh -c 'dl-key gen >key'
	[[ $stderr == "dl-key: standard output: mode 0644"* ]]
	is_key key
	fails 77 "mode 0644" dl-key pub key
	chmod 600 key
	dl-key pub key
}

@test "a key that others can get at is refused" {
	(umask 077 && echo "$secret" >key)
	for mode in 640 620 610 604 602 601 660 644 777; do
		chmod $mode key
		fails 77 "key: mode 0$mode" dl-key pub key
		fails 77 "standard input: mode 0$mode" dl-key pub - <key
	done
	chmod 400 key
	dl-key pub key
	[ "$(id -u)" -eq 0 ] || skip "only root can give a file away"
	chown 1 key
	fails 77 "belongs to user 1" dl-key pub key
}

@test "what is no key is refused and not shown" {
	umask 077
	for text in '' x "$secret$secret" "${secret%=}" "$secret " " $secret" \
		"$secret
" "${secret%o=}p=" "$(printf '%s' "$secret" | tr 4 -)"; do
		echo "$text" >key
		fails 65 "key: not a key" dl-key pub key
		[[ $output != *dwdtCn* ]]
	done
	printf '%s\0' "$secret" >key
	fails 65 "key: not a key" dl-key pub key
	fails 65 "standard input: not a key" dl-key pub </dev/null
	fails 65 "standard input: not a key" dl-key pub </dev/zero
	fails 66 "nothing: No such file" dl-key pub nothing
	fails 66 "/dev/fd/77: Bad file" dl-key pub /dev/fd/77
}

@test "a terminal gets no secret key, and gives none" {
	script -qec true /dev/null </dev/null || skip "no script(1)"
	script -qec 'dl-key gen; echo "status $?"' said </dev/null
	grep "dl-key: gen: standard output is a terminal" said
	grep "status 64" said
	run -1 grep -E '[A-Za-z0-9+/]{43}=' said
	script -qec 'dl-key pub; echo "status $?"' said </dev/null
	grep "dl-key: standard input: is a terminal" said
	grep "status 66" said
}

@test "misuse" {
	fails 64 "no command" dl-key
	fails 64 "such: no such command" dl-key such
	fails 64 "gen: takes no operand" dl-key gen key
	fails 64 "pub: takes one file" dl-key pub a b
	fails 64 "" dl-key pub -o file
	run -0 dl-key --help
	[[ ${lines[0]} == "usage: dl-key gen [-o FILE]" ]]
}

@test "it links what it uses: libsodium and libc" {
	run -0 sh -c 'objdump -p "$0" | grep NEEDED' \
		"$abs_top_builddir/dl-key"
	echo "$output"
	[[ $output == *libsodium* ]]
	[[ $output != *zstd* ]]
}
