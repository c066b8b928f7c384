#!/usr/bin/env bats
# Runs whose network is ssh: a real sshd on loopback, with a key and a forced
# command for each learner.

load run.bash

setup() {
	sshd=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v sshd) ||
		skip "there is no sshd"
	run_setup
	socket=$BATS_TEST_TMPDIR/s
	syncer
	wait_for has 1 "listens at" syncer.log
	make_keys
	start_sshd
}

teardown() {
	[ -n "$sshd" ] || return 0
	[ -z "${pid[sshd]}" ] || kill_sessions
	run_teardown
}

# key NAME [OPTION...]: its holder can only attach, with these options.
key() {
	local name=$1
	shift
	ssh-keygen -q -t ed25519 -N '' -C '' -f "ssh/$name"
	echo "command=\"$(command -v dl-sync) attach $* $socket\",restrict" \
		"$(cat "ssh/$name.pub")" >>ssh/authorized_keys
}

make_keys() {
	mkdir -m 700 ssh
	key ann --as ann
	key ben --as ben
	key eve --as eve --allow observer --allow ender
	ssh-keygen -q -t ed25519 -N '' -C '' -f ssh/stranger
	ssh-keygen -q -t ed25519 -N '' -C '' -f ssh/host
	echo "syncer $(cat ssh/host.pub)" >ssh/known_hosts
	cat >ssh/client <<-END
		Host syncer
		HostName 127.0.0.1
		HostKeyAlias syncer
		UserKnownHostsFile $PWD/ssh/known_hosts
		User $(id -un)
		IdentitiesOnly yes
		BatchMode yes
		LogLevel ERROR
	END
}

# The folder of the tests is below /tmp, which others can write to, so modes
# are not looked at. What start-up files of this account do is not tested.
write_sshd_config() {
	cat >ssh/sshd <<-END
		ListenAddress 127.0.0.1
		HostKey $PWD/ssh/host
		AuthorizedKeysFile $PWD/ssh/authorized_keys
		PidFile none
		StrictModes no
		SetEnv HOME=$PWD/ssh
		UsePAM no
		PasswordAuthentication no
		KbdInteractiveAuthentication no
		PermitRootLogin forced-commands-only
	END
	# Newer ones keep out for a while from where a session crashed.
	echo "PerSourcePenalties no" | cat ssh/sshd - >ssh/newer
	! "$sshd" -t -p 1 -f "$PWD/ssh/newer" 2>/dev/null ||
		mv ssh/newer ssh/sshd
}

# start_sshd: at a port that nobody has.
start_sshd() {
	# Root's sshd wants this; containers have nobody who made it.
	[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
	write_sshd_config
	until
		port=$((20000 + RANDOM % 12000))
		background sshd "$sshd" -D -e -p "$port" -f "$PWD/ssh/sshd"
		wait_for has 1 "listening on\|Cannot bind" sshd.log
		has 1 "listening on" sshd.log
	do
		ends sshd 255
		: >sshd.log
	done
	echo "Port $port" >>ssh/client
}

# children PID
children() {
	grep -l "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status 2>/dev/null |
		cut -d / -f 3
}

# kill_sessions: the monitor of each, and the process that is at the network.
kill_sessions() {
	for monitor in $(children "${pid[sshd]}"); do
		kill -9 "$monitor" $(children "$monitor") 2>/dev/null || true
	done
}

# over KEY: links go through ssh with that key; its pid is in the file ssh.pid.
over() {
	link="exec:echo \$\$ >ssh.pid; exec ssh -F ssh/client -i ssh/$1 syncer"
}

@test "a run over ssh: two learners, a join and the end" {
	over ann
	learner ann
	over ben
	learner ben
	wait_for pushed ann 3
	wait_for pushed ben 3
	over eve
	dl-join "$link" | dl-frag check -l layout.tsv -
	dl-sync end "$link"
	ends syncer
	ends ann
	ends ben
	is_better
}

@test "a key is one name's, and nothing else" {
	over ann
	learner ben
	ends ben 77
	grep -q "for learner ann, not for ben" ben.log
	run dl-join "$link"
	[ "$status" -eq 77 ]
	run dl-sync end "$link"
	[ "$status" -eq 77 ]
	run ssh -F ssh/client -i ssh/ann syncer id </dev/null
	[ "$status" -eq 69 ]
	[[ "$output" != *uid=* ]]
	[ -z "$(grep "is here\|: refused" syncer.log)" ]
}

@test "a key that sshd does not know is told once, and tried again" {
	over stranger
	learner ann
	wait_for has 2 "Permission denied" ann.log
	over ann
	cp ssh/ann ssh/stranger
	cp ssh/ann.pub ssh/stranger.pub
	wait_for pushed ann
	has 1 "exited with status 255: trying again" ann.log
	[ "$(grep -c "trying again" ann.log)" -eq 1 ]
}

@test "a learner comes back when ssh dies, and when sshd does" {
	over ann
	learner ann
	wait_for pushed ann
	kill -9 "$(cat ssh.pid)"
	wait_for has 2 "ann is here" syncer.log
	kill_sessions
	wait_for has 3 "ann is here" syncer.log
	n=$(grep -c '"push".*ann' tape)
	wait_for pushed ann $((n + 3))
	has 1 "killed by signal 9: trying again" ann.log
	has 1 "exited with status 255: trying again" ann.log
	dl-sync end "unix:$socket"
	ends ann
	ends syncer
	is_better
}
