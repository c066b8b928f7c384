#!/usr/bin/env bats
# dl-stat of a live syncer.
bats_require_minimum_version 1.5.0

load run.bash

setup() {
	command -v python3 >/dev/null || skip "python3 is not installed"
	run_setup
}

teardown() {
	run_teardown
}

# merges N: the tape has at least so many.
merges() {
	has "$1" '^{"event":"merged"' tape
}

@test "a live syncer tells what its tape does" {
	# What comes late is merged as soon as what came before it is.
	syncer --quorum 2 --grace none --late now
	wait_for [ -S s ]
	for name in ann bob cid; do
		learner $name
	done
	wait_for merges 9
	for name in ann bob cid; do
		kill "${pid[$name]}"
		ends $name
	done
	sleep 1.1 # after which figures are made anew
	dl-stat -t --from "$link" >live
	dl-stat -t tape >taped
	cat live
	# All but the times that go on.
	for f in live taped; do
		cut -f 1-5,7-13,15-20 $f >$f.same
	done
	diff live.same taped.same
	dl-stat -t -T fragments --from "$link" >live
	dl-stat -t -T fragments tape | diff live -
	# The other fragments are embeddings, which are merged by the mean.
	grep '"merged".*"cosine":[-0-9]' tape
	grep -P '^2\t.*\t-?0\.[0-9]+\t-?0\.[0-9]+$' live
	dl-stat --html page.html --from "$link"
	python3 "$abs_top_srcdir/tests/cmd/page.py" page.html
	dl-stat --prometheus --from "$link" >metrics
	python3 "$abs_top_srcdir/tests/cmd/metrics.py" metrics
	dl-stat -t -T timeline --from "$link" | grep -q "^ann.*training"
	kill "${pid[syncer]}"
	ends syncer
	run dl-stat --from "$link"
	[ "$status" -eq 69 ]
}

@test "an observer's key is enough, another is not" {
	for name in syncer eve mallory; do
		dl-key gen -o "$name.key"
	done
	echo "$(dl-key pub eve.key) eve observer" >authorized
	link=tcp:127.0.0.1:0
	syncer --key syncer.key --authorized authorized
	wait_for has 1 "run run-" syncer.log
	link=tcp:$(dl-key pub syncer.key)@$(
		sed -n 's/.*listens at tcp://p' syncer.log)
	run -0 dl-stat --from "$link" --key eve.key
	[[ ${lines[0]} = "run run-"* ]]
	run -77 dl-stat --from "$link" --key mallory.key
	run -64 dl-stat --from "$link"
	run -64 dl-stat --from "$link" --key eve.key tape
	run -64 dl-stat --key eve.key tape
	run -64 dl-stat --from dir:spool
}

@test "an ssh key that lets in observers lets in watchers" {
	syncer
	wait_for [ -S s ]
	run -77 dl-stat --from "exec:dl-sync attach --as ann $PWD/s"
	run -0 dl-stat --from \
		"exec:dl-sync attach --as ann --allow observer $PWD/s"
}

@test "the metrics by HTTP, on loopback only" {
	syncer
	wait_for [ -S s ]
	background web dl-stat --listen 127.0.0.1:0 --from "$link"
	wait_for has 1 "listens at tcp" web.log
	port=$(sed -n 's/.*listens at tcp:127.0.0.1://p' web.log)
	python3 - "$port" <<-'END' >metrics
		import http.client, socket, sys
		port = int(sys.argv[1])
		def ask(method, path):
		    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
		    c.request(method, path)
		    r = c.getresponse()
		    return r.status, r.getheader("Content-Type"), r.read().decode()
		# Who says nothing, too much or nonsense holds up nobody for long.
		silent = socket.create_connection(("127.0.0.1", port))
		status, kind, body = ask("GET", "/metrics")
		assert status == 200 and kind.startswith("text/plain; version=0.0.4")
		assert ask("GET", "/")[0] == 404
		assert ask("GET", "/metricsx")[0] == 404
		assert ask("POST", "/metrics")[0] == 405
		assert ask("GET", "/metrics?a=b")[0] == 200
		for text in b"\0\r\n\r\n", b"x" * 20000, b"GET /metrics\r\n\r\n":
		    s = socket.create_connection(("127.0.0.1", port))
		    s.sendall(text)
		    try:
		        assert b"200 OK" not in s.recv(1000)
		    except ConnectionResetError:
		        pass
		print(body, end="")
	END
	python3 "$abs_top_srcdir/tests/cmd/metrics.py" metrics
	grep -q '^dl_run_info{run="run-' metrics
	kill "${pid[syncer]}"
	ends syncer
	# The syncer may come back, and until then there is nothing to tell.
	python3 - "$port" <<-'END'
		import sys, urllib.error, urllib.request
		try:
		    urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/metrics")
		except urllib.error.HTTPError as e:
		    assert e.code == 503, e.code
		else:
		    raise SystemExit("it is answered")
	END
	has 1 "dl-stat: unix:" web.log
	for address in 0.0.0.0:0 192.0.2.1:0 "[::]:0" nonsense; do
		run -64 dl-stat --listen "$address" --from "$link"
	done
}

# A crowd that asks all the time, and reads nothing, is sent away as observers
# are, and training goes on.
@test "watchers that read nothing do not hold up a run" {
	syncer --dead 300ms
	wait_for [ -S s ]
	learner ann
	background crowd python3 "$abs_top_srcdir/tests/run/watchers.py" "$link"
	wait_for has 1 "crowded" crowd.log
	n=$(grep -c '"event":"merged"' tape || true)
	wait_for merges $((n + 6))
	wait_for dl-stat -o now --from "$link"
	kill -9 "${pid[crowd]}"
}
