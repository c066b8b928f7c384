#!/bin/sh
# A run whose network is ssh: a syncer that listens at a unix socket only, and
# two sites that may do nothing on its machine but take part, each by its own
# key and under its own name. Runs in a moment, with the programs on PATH:
#
#	examples/ssh.sh [folder]
#
# Here all of it is on one machine, with an sshd of its own. In earnest steps 1,
# 3 and 4 are done on the syncer's machine and 2 and 5 at each site; sshd is
# there already, and authorized_keys is in the account's ~/.ssh. The exit status
# is 0 only if every check that it prints holds.
set -eu
# shellcheck source=/dev/null
. "$(dirname "$0")/show.sh"

mkdir -p "${1:-ssh-run}"
cd "${1:-ssh-run}"
folder=$(pwd)
sites='site2 site3'

ends_with() { # status, command...
	want=$1
	shift
	got=0
	"$@" || got=$?
	[ "$got" = "$want" ]
}

try_a_shell() { # key
	ssh -F "$1.config" dc1 touch "$folder/oops" </dev/null >answer 2>&1
}

loss() { # model
	dl-train eval -q --config start/config.json "$1" text |
		awk -F '\t' '!/^#/ { print $2 }'
}

pids=
trap 'kill $pids 2>/dev/null || true' EXIT
trap 'exit 1' INT TERM

say '1. On the syncer'\''s machine: a run, at a unix socket'
seq 10000 | sed 's/.*/& bottles of beer on the wall/' >text
dl-train init -q -L 1 -H 2 -d 32 -c 32 -s 1 start
dl-frag plan -n 4 start >layout.tsv
dl-sync serve --store store --listen unix:sock --layout layout.tsv -H 8 \
	--tape tape -o final.safetensors start 2>syncer.log &
syncer=$!
pids=$syncer
wait_for finds 'listens at' syncer.log
cat syncer.log

say '2. At each site: a key'
for site in $sites; do
	rm -f "$site" "$site.pub"
	ssh-keygen -q -t ed25519 -N '' -C "$site" -f "$site"
	cat "$site.pub"
done

say '3. On the syncer'\''s machine: each key is a name, and good for nothing else'
for site in $sites; do
	printf 'command="%s attach --as %s '\''%s/sock'\''",restrict %s\n' \
		"$(command -v dl-sync)" "$site" "$folder" "$(cat "$site.pub")"
done >authorized_keys
cat authorized_keys

say '4. There too: sshd'
rm -f host host.pub
ssh-keygen -q -t ed25519 -N '' -C '' -f host
# One that is there already needs none of this. This one works from any folder,
# be it one that others can write to, and leaves start-up files alone.
cat >sshd_config <<END
ListenAddress 127.0.0.1
HostKey "$folder/host"
AuthorizedKeysFile "$folder/authorized_keys"
PermitRootLogin forced-commands-only
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
PidFile none
StrictModes no
SetEnv "HOME=$folder"
END
[ "$(id -u)" != 0 ] || mkdir -p /run/sshd
port=$((20000 + $$ % 12000))
while :; do # until a port is free
	"$(PATH=$PATH:/usr/sbin command -v sshd)" -D -e -p $port \
		-f "$folder/sshd_config" 2>sshd.log &
	pids="$pids $!"
	wait_for finds 'listening on\|Cannot bind' sshd.log
	! finds 'listening on' sshd.log || break
	port=$((port + 1))
done
cat sshd.log

say '5. At each site: a learner'
echo "dc1 $(cat host.pub)" >known_hosts
for site in $sites; do
	# Notice within 15 s that the network is gone, and never ask anything.
	cat >"$site.config" <<-END
		Host dc1
		HostName 127.0.0.1
		Port $port
		HostKeyAlias dc1
		UserKnownHostsFile "$folder/known_hosts"
		IdentityFile "$folder/$site"
		IdentitiesOnly yes
		BatchMode yes
		RequestTTY no
		ServerAliveInterval 5
	END
	dl-learn -n "$site" "exec:ssh -F $site.config dc1" -- \
		dl-train run -q -b 4 --step-time 20ms start text \
		2>"$site.log" &
	eval "pid_$site=\$!"
	pids="$pids $!"
done
check 'site2 takes part' wait_for finds '"push".*site2' tape
check 'site3 takes part' wait_for finds '"push".*site3' tape

say '6. What a key does not open'
check 'the run under the name of another: 77' ends_with 77 \
	dl-learn -n site2 'exec:ssh -F site3.config dc1' -- true
check 'the end of the run: 77' ends_with 77 \
	dl-sync end 'exec:ssh -F site3.config dc1'
check 'a shell: an attach runs instead, and gets no hello' \
	ends_with 69 try_a_shell site3
check 'nothing else has been run' [ ! -e oops ]

say '7. On the syncer'\''s machine: the end'
check 'the run is asked to end' dl-sync end unix:sock
check 'the syncer wrote the model and left with status 0' wait $syncer
for site in $sites; do
	check "$site left with status 0" wait "$(eval "echo \$pid_$site")"
done
dl-stat tape
before=$(loss start)
after=$(loss final.safetensors)
check "the model learned: $before, then $after nats a byte" \
	awk "BEGIN { exit !($after < $before) }"
finish
