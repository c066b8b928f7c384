# Networks for tests of whole runs, beside run.bash: sites are network
# namespaces, joined at a hub by long cables (switch.c), with tbf for rate and
# nft for loss and cuts. A site is a process that sleeps: it dies with the test
# and all that is in it goes with it, so that nothing is left behind. A program
# that run.bash runs in the background is at the site of its name.

# net_skip: says why there can be no networks here, or 1.
net_skip() {
	[ "$(id -u)" = 0 ] || { echo "not root"; return; }
	for tool in ip tc nft nsenter unshare setpriv; do
		command -v "$tool" >/dev/null || { echo "no $tool"; return; }
	done
	[ -c /dev/net/tun ] || { echo "no /dev/net/tun"; return; }
	unshare -n -m sh -e >/dev/null 2>&1 <<-'END' && return 1
		ip link add dummy0 type bridge
		ip link add left type veth peer name right
		tc qdisc add dev left root tbf rate 10mbit burst 16kb limit 16kb
		nft add table bridge t
		nft add table ip t
		nft add chain ip t out '{ type nat hook postrouting priority 0; }'
		nft add rule ip t out masquerade
		nft add chain ip t in '{ type filter hook prerouting priority 0; }'
		nft add rule ip t in numgen random mod 100 '<' 1 drop
		mount --bind /dev/null /etc/hosts
		mount --bind /dev/null /etc/resolv.conf
	END
	echo "no namespaces, or no veth, bridge, tbf or nft in them"
}

net_setup() {
	local why

	! why=$(net_skip) || skip "$why"
	declare -gA space=() place=()
	hosts=$BATS_TEST_TMPDIR/hosts
	echo 127.0.0.1 localhost >"$hosts"
	: >"$BATS_TEST_TMPDIR/resolv.conf"
	namespace hub
	at hub ip link add name bridge type bridge
	at hub ip link set dev bridge up
	at hub nft -f - <<-'END'
		table bridge hub {
			set cut { type ifname; }
			chain forward {
				type filter hook forward priority 0
				iifname @cut drop
				oifname @cut drop
			}
		}
	END
}

# Before run_teardown, which waits for all.
net_teardown() {
	for p in "${space[@]}"; do
		kill -9 "$p" 2>/dev/null || true
	done
}

# namespace NAME: one whose names are the test's, as are its name servers.
namespace() {
	# shellcheck disable=SC2016 # of sh
	setpriv --pdeathsig KILL unshare -n -m sh -c \
		'mount --bind "$0" /etc/hosts &&
			mount --bind "${0%/*}/resolv.conf" /etc/resolv.conf &&
			exec sleep infinity' "$hosts" 3>&- &
	space[$1]=$!
	wait_for grep -q sleep "/proc/$!/comm"
	at "$1" ip link set dev lo up
}

# at SITE COMMAND...
at() {
	(become_at "$@")
}

# become_at SITE COMMAND...: at, in the place of this shell.
become_at() {
	local site=$1

	shift
	exec nsenter -t "${space[$site]}" -n -m sh -c 'cd "$0" && exec "$@"' \
		"$PWD" "$@"
}

# site NAME NUMBER [OPTION]: has address 10.9.0.NUMBER, 25 ms away from the hub;
# -b is an option of switch.
site() {
	namespace "$1"
	# shellcheck disable=SC2086 # one option or none
	setpriv --pdeathsig KILL "$abs_top_builddir/tests/net/switch" ${3-} \
		25ms "/proc/${space[hub]}/ns/net:$1" \
		"/proc/${space[$1]}/ns/net:wan" 3>&- &
	space[$1.cable]=$!
	wait_for at "$1" ip link set dev wan up 2>/dev/null
	at hub ip link set dev "$1" master bridge up
	at "$1" ip address add "10.9.0.$2/24" dev wan
	echo "10.9.0.$2 $1" >>"$hosts"
}

# move NAME NUMBER: the name is that of another address now.
move() {
	local others

	others=$(grep -v " $1\$" "$hosts")
	printf '%s\n' "$others" "10.9.0.$2 $1" >"$hosts"
}

# nowhere SITE NUMBER: what it sends to that address is lost without a word.
nowhere() {
	at "$1" ip neighbour add "10.9.0.$2" lladdr 02:00:00:00:00:01 dev wan
}

# rate SITE RATE QUEUE [BURST]: both ways, with so many bytes waiting at most.
# Larger packets than BURST are cut into those of the wire.
rate() {
	local tbf=(tbf rate "$2" limit "$3" burst "${4-16kb}")

	at "$1" tc qdisc add dev wan root "${tbf[@]}"
	at hub tc qdisc add dev "$1" root "${tbf[@]}"
}

# loss SITE PERCENT: of what comes to it.
loss() {
	at "$1" nft -f - <<-END
		table ip loss {
			chain in {
				type filter hook prerouting priority 0
				iifname wan numgen random mod 100 < $2 drop
			}
		}
	END
}

# cut_off SITE, heal SITE: what goes to it and what comes from it is lost, and no
# one is told.
cut_off() {
	at hub nft add element bridge hub cut "{ $1 }"
}
heal() {
	at hub nft delete element bridge hub cut "{ $1 }"
}

# behind SITE NAME: a site that can only dial out, by SITE's address.
behind() {
	namespace "$2"
	at "$1" ip link add name "$2" type veth peer name wan \
		netns "${space[$2]}"
	at "$1" ip address add 192.168.7.1/24 dev "$2"
	at "$1" ip link set dev "$2" up
	at "$1" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	at "$1" nft -f - <<-'END'
		table ip nat {
			chain out {
				type nat hook postrouting priority 100
				oifname wan masquerade
			}
		}
	END
	at "$2" ip link set dev wan up
	at "$2" ip address add 192.168.7.2/24 dev wan
	at "$2" ip route add default via 192.168.7.1
}

# background NAME COMMAND...: at the site of that name, or of place[NAME].
background() {
	local name=$1
	shift
	become_at "${place[$name]-$name}" "$@" >>"$name.log" 2>&1 3>&- &
	pid[$name]=$!
}

# received SITE: bytes that have come to it.
received() {
	at "$1" awk '$1 == "wan:" { print $2 }' /proc/net/dev
}

has_received() {
	[ "$(received "$1")" -ge "$2" ]
}

# throughput SITE BYTES: Mbit/s of the middle half of so many that come.
throughput() {
	local before begun

	before=$(received "$1")
	wait_for has_received "$1" $((before + $2 / 4))
	begun=${EPOCHREALTIME/./}
	before=$(received "$1")
	wait_for has_received "$1" $((before + $2 / 2))
	echo $((($(received "$1") - before) * 8 /
		(${EPOCHREALTIME/./} - begun)))
}
