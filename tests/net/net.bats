#!/usr/bin/env bats
# Runs across networks: long, thin and lossy ones, ones that are cut, and sites
# that move or hide. They need root and some of the kernel, and are skipped
# without (net.bash). With DL_NET_FULL set the thin link has 200 MB to carry
# instead of 20, and is watched for two minutes instead of seconds; and four
# streams have to fill a fat one, which takes a machine that does nothing else.

load ../run/run.bash
load net.bash

setup() {
	net_setup
	run_setup
	listen=tcp:syncer:4000
	keys
	link=tcp:$(dl-key pub syncer.key)@syncer:4000
}

teardown() {
	declare -p space >/dev/null 2>&1 || return 0
	net_teardown
	run_teardown
}

# Of the syncer, and of all who may come to it.
keys() {
	dl-key gen -o syncer.key
	for who in "ann" "ben" "visitor observer" "boss end"; do
		dl-key gen -o "${who% *}.key"
		echo "$(dl-key pub "${who% *}.key") $who" >>authorized
	done
}

# serve [OPTION...], train NAME [OPTION...]: syncer and learner in sessions.
serve() {
	link=$listen syncer --key syncer.key --authorized authorized "$@"
}
train() {
	learner "$1" --key "$1.key" "${@:2}"
}

# sites NAME...: with addresses 10.9.0.1, 10.9.0.2, ...
sites() {
	local n=0

	for name in "$@"; do
		site "$name" $((++n))
	done
}

# goes_on NAME [N]: its pushes still come.
goes_on() {
	local before

	before=$(grep -c "\"push\".*\"learner\":\"$1\"" tape)
	wait_for pushed "$1" $((before + ${2:-3}))
}

@test "three sites, 100 ms, 10 Mbit/s and a loss of 1%: a run to its end" {
	sites syncer ann ben
	for name in syncer ann ben; do
		rate "$name" 10mbit 128kb
		loss "$name" 1
	done
	serve --steps 60
	train ann
	train ben
	ends syncer
	ends ann
	ends ben
	is_better
}

@test "a site that is cut off is not missed, and comes back" {
	sites syncer ann ben
	serve --dead 3s
	train ann
	train ben
	wait_for pushed ann
	wait_for pushed ben
	cut_off ben
	wait_for has 1 "ben is gone: silent for" syncer.log
	goes_on ann 6
	wait_for has 1 "silent for" ben.log
	heal ben
	wait_for has 2 '"join".*"ben"' tape
	# What it did alone weighs much, and the model is worse for a while.
	goes_on ben 30
	at syncer dl-sync end --key boss.key "$link"
	ends syncer
	ends ann
	ends ben
	is_better
}

@test "a learner that died in the dark is replaced when it comes elsewhere" {
	sites syncer ann another
	serve --dead 10m
	train ann
	wait_for pushed ann
	cut_off ann
	kill_hard ann
	place[ann]=another
	train ann
	wait_for has 1 "ann is gone: silent, and replaced" syncer.log
	goes_on ann
}

@test "learners follow a syncer that moves" {
	sites syncer ann other
	serve
	train ann
	wait_for pushed ann
	kill "${pid[syncer]}"
	ends syncer
	cut_off syncer
	move syncer 3
	place[syncer]=other
	serve
	goes_on ann
	grep -q '"epoch":2' store/HEAD
}

@test "all addresses of a syncer's name are tried" {
	sites syncer ann
	# The second leads nowhere, and the system prefers it, as the nearer.
	echo "10.9.0.3 syncer" >>"$hosts"
	nowhere ann 3
	listen=tcp:10.9.0.1:4000
	serve
	train ann
	wait_for has 1 "trying again" ann.log
	wait_for pushed ann
	at ann dl-join --key visitor.key -o joined.safetensors "$link"
	dl-frag check joined.safetensors
}

@test "a name server that is silent stops no trainer" {
	sites syncer ann
	serve
	stub
	idler ann 0.1
	wait_for pushed ann
	nowhere ann 3
	echo 127.0.0.1 localhost >"$hosts"
	printf '%s\n' "nameserver 10.9.0.3" "options timeout:30 attempts:5" >resolv.conf
	kill "${pid[syncer]}"
	ends syncer
	wait_for has 1 "trying again" ann.log
	# By then a look-up has begun, and it lasts minutes.
	steps=$(grep -c go orders.ann)
	wait_for has $((steps + 30)) go orders.ann
}

@test "learners behind one address only dial out, and so do those who join" {
	sites syncer home
	behind home inside
	place[ann]=inside
	place[ben]=inside
	serve
	train ann
	train ben
	wait_for pushed ann
	wait_for pushed ben
	has 2 "is here (tcp:10.9.0.2:" syncer.log
	at inside dl-join --key visitor.key -o joined.safetensors "$link"
	dl-frag check joined.safetensors
}

# zeros MB: the model is so large, in 24 tensors; a file without blocks.
zeros() {
	local n=$(($1 * 1000000 / 24 / 4)) json='' at=0 length

	for tensor in $(seq 10 33); do
		json+=",\"t$tensor\":{\"dtype\":\"F32\",\"shape\":[$n],"
		json+="\"data_offsets\":[$at,$((at += 4 * n))]}"
	done
	json="{${json:1}}"
	length=${#json}
	# shellcheck disable=SC2059 # the length is bytes
	printf "\\x$(printf %02x $((length % 256)))\\x$(printf %02x \
		$((length / 256)))\0\0\0\0\0\0$json" >m/model.safetensors
	truncate -s $((8 + length + at)) m/model.safetensors
	dl-frag plan -n 24 m/model.safetensors >layout.tsv
}

# stub SECONDS: a trainer that never learns, for models too large to train here.
stub() {
	dl-frag split -l layout.tsv -o cut m/model.safetensors
	cat >stub <<-'END'
		#!/bin/bash
		echo "ready 1" >&4
		while read -r order fragment path <&3; do
			echo "$order" >>orders.$DL_NAME
			case $order in
			go) sleep "$1"; echo "step 16 1.0" ;;
			send) cp "cut/$(printf %03d "$fragment").frag" "$path"
				echo ok ;;
			*) echo ok ;;
			esac >&4
			[ "$order" != stop ] || exit 0
		done
	END
	chmod +x stub
}

# idler NAME SECONDS: a learner with a stub; each line of its log has the time.
idler() {
	background "$1" bash -c 'exec "$@" 2> >(while read -r line; do
		echo "$EPOCHREALTIME $line"; done)' bash \
		dl-learn -v -n "$1" --scratch "$scratch" --key "$1.key" \
		"$link" -- ./stub "$2"
}

# latencies NAME [N]: how long each `open` took to that learner, in seconds, from
# the step that led to it, shortest first; of those after line N of its log.
latencies() {
	awk -v first="${2-0}" '
	function number(key) {
		match($0, "\"" key "\":[0-9]+")
		return substr($0, RSTART + length(key) + 3) + 0
	}
	FNR == NR && /"event":"step"/ {
		for (clock = number("clock"); clock > last; last++)
			due[last + 1] = number("wall") / 1e9
	}
	FNR != NR && FNR > first && / is due: step / && $NF in due {
		printf "%.2f\n", $1 - due[$NF]
	}' tape "$1.log" | sort -n
}

# none_took SECONDS WHO: and says what they took.
none_took() {
	awk -v most="$1" -v who="$2" '
	{ second[NR] = $1 }
	END {
		print "#", NR, "opens to", who ": median", second[int((NR + 1) / 2)] \
			" s, 19 of 20 within", second[int((NR * 19 + 19) / 20)] \
			" s, all within", second[NR], "s"
		exit !(NR && second[NR] < most)
	}'
}

@test "a thin link that is full of fragments carries opens and life" {
	local mb=20 pauses=(0.2 0.3) settle=3 watch=5 before gone

	[ -z "${DL_NET_FULL-}" ] || {
		mb=200 pauses=(1 1.5) settle=20 watch=120
	}
	site syncer 1 -b
	site ben 2 -b
	place[ann]=syncer
	zeros "$mb"
	stub
	serve -H 24 --min-h 1
	wait_for has 1 "in store" syncer.log
	idler ann "${pauses[0]}"
	wait_for pushed ann
	idler ben "${pauses[1]}"
	# A large one takes its time to load.
	for i in 1 2 3; do
		! wait_for has 1 '"step".*"ben"' tape || break
	done
	wait_for pushed ben
	rate ben 10mbit 128kb
	sleep "$settle"
	before=$(wc -l <ben.log)
	gone=$(grep -c gone syncer.log || true)
	sleep "$watch"
	# What is queued, either way, takes longer than the silence of death.
	latencies ben "$before" | none_took 10 "the thin link's end" >&3
	latencies ann | none_took 60 "the syncer's neighbour" >&3
	[ "$(grep -c gone syncer.log || true)" -eq "$gone" ]
	tail -n "+$before" ben.log | not grep "trying again"
}

# fetch [OPTION...]: speed is at how many Mbit/s a new learner gets the model.
fetch() {
	background ben dl-learn -n ben --key ben.key --scratch "$scratch" \
		"$@" "$link" -- sleep infinity
	speed=$(throughput ben 600000000)
	kill_hard ben
}

@test "four streams fill a fat long link that one does not" {
	local speed one

	[ -n "${DL_NET_FULL-}" ] || skip "DL_NET_FULL is not set"
	site syncer 1 -b
	site ben 2 -b
	rate ben 1gbit 16mb 256kb
	zeros 600
	serve --streams 4
	wait_for has 1 "in store" syncer.log
	fetch
	one=$speed
	kill_hard syncer
	serve --streams 4 --buffers 4M
	fetch --streams 4
	echo "# one stream $one Mbit/s, four $speed Mbit/s" >&3
	[ "$one" -lt 850 ]
	[ "$speed" -ge 850 ]
}
