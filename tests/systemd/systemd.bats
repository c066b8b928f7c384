#!/usr/bin/env bats
# The units in examples/systemd under a real systemd (boot), set up as their
# heads say. It needs root and namespaces, and is skipped without.

load ../run/run.bash

setup() {
	local why

	! why=$(systemd_skip) || skip "$why"
	run_setup
	root=$BATS_TEST_TMPDIR/root
	log=$root/var/log
	units=$root/etc/systemd/system
	mkdir -p "$units" "$root/srv"
	cp "$abs_top_srcdir"/examples/systemd/* "$units"
	for unit in dl-sync dl-learn; do
		dress "$unit" log <<-END
			[Service]
			StandardError=append:/var/log/$unit@%i
		END
	done
	cp -R m text layout.tsv "$root/srv"
	mkdir "$root/etc/dl-tools"
	boot
}

teardown() {
	declare -p pid >/dev/null 2>&1 || return 0
	if [ -n "${init:-}" ]; then
		kill -9 "$init"
		ends boot
	fi
	cat "$log"/* || true
	run_teardown
}

systemd_skip() {
	[ "$(id -u)" = 0 ] || { echo "not root"; return; }
	[ -x /usr/lib/systemd/systemd ] || { echo "there is no systemd"; return; }
	! ldd "$(command -v dl-sync)" | grep -q 'lib[alt]*san' ||
		{ echo "sanitizers ask for more than the units give"; return; }
	unshare --mount --uts --ipc --net --pid --fork sh -e \
		>/dev/null 2>&1 <<-'END' && return 1
		mount -t proc proc /proc
		mount -t sysfs -o ro sysfs /sys
		mount -t cgroup2 cgroup2 /mnt
		rmdir "$(mktemp -d /mnt/dl-tools-XXXXXX)"
		unshare --cgroup true
	END
	echo "no namespaces, or no second version of control groups"
}

# dress UNIT NAME: standard input is of each of its instances.
dress() {
	mkdir -p "$units/$1@.service.d"
	cat >"$units/$1@.service.d/$2.conf"
}

boot() {
	background boot unshare --mount --uts --ipc --net \
		"$abs_top_srcdir/tests/systemd/boot" "$root" "$abs_top_builddir"
	wait_for finds_init
	wait_for inside [ -S /run/systemd/private ]
}

# The child of the process that made its namespace.
finds_init() {
	init=$(($(children "$(($(children "${pid[boot]}")))")))
	[ "$(cat "/proc/$init/comm" 2>/dev/null)" = systemd ]
}

children() {
	cat "/proc/$1/task/$1/children" 2>/dev/null
}

# inside COMMAND...: where that systemd is.
inside() {
	nsenter --all --target "$init" "$@"
}

# is UNIT PROPERTY VALUE
is() {
	inside systemctl show -P "$2" "$1" | grep -qx -- "$3"
}

# has_syncer: there is what the run demo needs, in which ash may be.
has_syncer() {
	local etc=$root/etc/dl-tools/dl-sync

	mkdir -p "$etc"
	dl-key gen -o "$etc/demo.key"
	dl-key gen -o ash.key
	echo "$(dl-key pub ash.key) ash" >"$etc/demo.learners"
	cat >"$etc/demo.conf" <<-END
		OPTIONS=--key - --authorized /etc/dl-tools/dl-sync/demo.learners \
		--listen tcp:127.0.0.1:4000 --fragments 3 -H 6
		MODEL=/srv/m/model.safetensors
	END
	state=$root/var/lib/private/dl-sync/demo
}

serve() {
	has_syncer
	inside systemctl start dl-sync@demo
	is dl-sync@demo ActiveState active
	wait_for is dl-sync@demo StatusText 'clock 0, 0 of 0 learners live.*'
}

# has_learner NAME: there is what it needs.
has_learner() {
	local etc=$root/etc/dl-tools/dl-learn

	mkdir -p "$etc"
	cp "$1.key" "$etc"
	cat >"$etc/$1.conf" <<-END
		OPTIONS=--key - --heartbeat 300ms
		LINK=tcp:$(dl-key pub "$root/etc/dl-tools/dl-sync/demo.key")@127.0.0.1:4000
		TRAINER=dl-train run -q -b 2 --step-time 10ms /srv/m /srv/text
	END
}

# train NAME: returns when it works.
train() {
	has_learner "$1"
	inside systemctl start "dl-learn@$1"
	is "dl-learn@$1" ActiveState active
	is "dl-learn@$1" NRestarts 0
}

# pushes NAME: how many of it the syncer has noted.
pushes() {
	grep -c "\"push\".*\"learner\":\"$1\"" "$state/tape"
}

# came NAME N: at least so many have come.
came() {
	[ "$(pushes "$1")" -ge "$2" ]
}

# goes_on NAME: four more come.
goes_on() {
	local before

	before=$(pushes "$1")
	wait_for came "$1" $((before + 4))
}

@test "a syncer and a learner, from the start to the end of a run" {
	serve
	train ash
	wait_for came ash 4
	wait_for is dl-learn@ash StatusText 'in touch: clock.*'
	inside dl-stat --tsv --from unix:/run/dl-sync/demo/sock |
		grep -P "^ash\ttraining\t"
	inside dl-sync end unix:/run/dl-sync/demo/sock
	for unit in dl-sync@demo dl-learn@ash; do
		wait_for is $unit ActiveState inactive
		is $unit Result success
		is $unit NRestarts 0
	done
	dl-frag check "$state/model.safetensors"
}

@test "a reload takes up a new tape and new keys" {
	serve
	mv "$state/tape" "$state/tape.1"
	dl-key gen -o elm.key
	echo "$(dl-key pub elm.key) elm" >>"$root/etc/dl-tools/dl-sync/demo.learners"
	inside systemctl reload dl-sync@demo
	wait_for [ -e "$state/tape" ]
	train elm
	wait_for came elm 1
	inside systemctl reload dl-learn@elm
	wait_for is dl-learn@elm ActiveState active
}

@test "a learner that is stopped delivers its last work, and goes on later" {
	serve
	train ash
	wait_for came ash 2
	inside systemctl stop dl-learn@ash
	is dl-learn@ash Result success
	is dl-learn@ash ExecMainStatus 0
	wait_for has 1 '"drained".*"ash"' "$state/tape"
	[ -n "$(ls "$root/var/lib/private/dl-learn/ash")" ]
	before=$(pushes ash)
	inside systemctl start dl-learn@ash
	wait_for came ash $((before + 2))
}

@test "a syncer that is stopped goes on where it was" {
	serve
	train ash
	wait_for came ash 4
	inside systemctl stop dl-sync@demo
	is dl-sync@demo Result success
	is dl-sync@demo ExecMainStatus 0
	before=$(pushes ash)
	inside systemctl start dl-sync@demo
	wait_for came ash $((before + 4))
	[ "$(grep -c '"run"' "$state/tape")" -eq 2 ]
}

# signal NAME UNIT...: to each one's main process.
signal() {
	inside systemctl kill --kill-who=main --signal="$1" "${@:2}"
}

# again N UNIT: it has been started again so many times at least, and works.
again() {
	[ "$(inside systemctl show -P NRestarts "$2")" -ge "$1" ] &&
		is "$2" ActiveState active
}

@test "who hangs or dies is started again" {
	for unit in dl-sync dl-learn; do
		dress $unit haste <<-END
			[Service]
			WatchdogSec=3s
			RestartSec=100ms
		END
	done
	inside systemctl daemon-reload
	serve
	train ash
	wait_for came ash 1
	signal STOP dl-sync@demo dl-learn@ash
	wait_for again 1 dl-sync@demo
	wait_for again 1 dl-learn@ash
	goes_on ash
	signal KILL dl-sync@demo dl-learn@ash
	wait_for again 2 dl-sync@demo
	wait_for again 2 dl-learn@ash
	goes_on ash
}

# stays_down UNIT CODE
stays_down() {
	wait_for is "$1" ActiveState failed
	is "$1" ExecMainStatus "$2"
	is "$1" NRestarts 0
}

@test "who cannot work is not started again" {
	mv "$root/srv/m" aside
	has_syncer
	inside systemctl start dl-sync@demo || true
	stays_down dl-sync@demo 66
	mv aside "$root/srv/m"
	inside systemctl start dl-sync@demo
	dl-key gen -o elm.key
	has_learner elm
	inside systemctl start dl-learn@elm || true
	stays_down dl-learn@elm 77
}

@test "passes over a spool, by a timer" {
	echo 'dl-tools:x:990:990::/:/usr/sbin/nologin' >>"$root/etc/passwd"
	echo 'dl-tools:x:990:' >>"$root/etc/group"
	mkdir -p "$root/etc/dl-tools/dl-sync-run"
	install -d -o 990 "$root/srv/dl-tools/demo"
	cat >"$root/etc/dl-tools/dl-sync-run/demo.conf" <<-END
		OPTIONS=--layout /srv/layout.tsv
		MODEL=/srv/m/model.safetensors
	END
	inside systemctl start dl-sync-run@demo.timer
	is dl-sync-run@demo.timer ActiveState active
	inside systemctl start dl-sync-run@demo.service
	is dl-sync-run@demo.service ExecMainStatus 75
	is dl-sync-run@demo.service Result success
	[ -e "$root/srv/dl-tools/demo/spool/global/latest" ]
}
