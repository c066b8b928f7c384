/*
 * The learner's side of dl-trainer(7), driven against small trainers written
 * in shell (over descriptors 3 and 4) and one over the socket.
 */
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "link/loop.h"
#include "link/signals.h"
#include "tests/tap.h"
#include "train/host.h"
#include "train/line.h"
#include "train/scratch.h"

static struct dl_loop loop = DL_LOOP_INIT;
static struct dl_scratch scratch = DL_SCRATCH_INIT;
static int signals;
static const char *self;

static void drop_signals(void *ctx, int fd, short revents)
{
	(void)ctx;
	(void)fd;
	(void)revents;
	while (dl_signals_next())
		;
}

static int64_t silence_ns = 60 * DL_SECOND;

static struct dl_host *start(char *const *command, int64_t stop_ns)
{
	static const char *const environ[] = {"DL_NAME=ann", NULL};
	struct dl_host_config c = {
		&loop, command, environ, scratch.path, stop_ns, silence_ns};
	struct dl_err e;
	struct dl_host *h = dl_host_new(&c, &e);

	if (!h || dl_host_start(h, &e)) {
		printf("Bail out! %s\n", e.text);
		exit(1);
	}
	return h;
}

static struct dl_host *start_shell(const char *script, int64_t stop_ns)
{
	static char shell[] = "/bin/sh", flag[] = "-c";
	static char *command[] = {shell, flag, NULL, NULL};

	command[2] = (char *)script;
	return start(command, stop_ns);
}

/* The next event within 20 s; -1 when there is none. */
static int next(struct dl_host *h, struct dl_host_event *ev)
{
	int64_t end = dl_now() + 20 * DL_SECOND;
	struct dl_err e;

	while (dl_now() < end) {
		int64_t wake;

		if (dl_host_next(h, dl_now(), ev))
			return (int)ev->kind;
		wake = dl_host_wake(h);
		dl_loop_once(&loop, wake < end ? wake : end, &e);
	}
	return -1;
}

static void test_lines(void)
{
	static const char *const bad[] = {"", "ready", "ready 2", "ok ", "OK",
		"step", "step 1", "step -1 2.0", "step 1 2.0 3", "step 1  2.0",
		"step x 1", "step 1 1e999x", "error", "go", "ok\t",
		"step 0 1", "step 1099511627777 1"};
	struct dl_line line;
	struct dl_err e;
	char big[DL_LINE_MAX + 2];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ok(dl_line_parse(&line, bad[i], strlen(bad[i]), &e) ==
				DL_PROTOCOL,
			"\"%s\" is refused", bad[i]);
	ok(dl_line_parse(&line, "ok\0x", 4, &e) == DL_PROTOCOL,
		"NUL is refused");
	memset(big, 'x', sizeof big);
	memcpy(big, "error ", 6);
	ok(dl_line_parse(&line, big, DL_LINE_MAX + 1, &e) == DL_PROTOCOL,
		"a long line is refused");
	ok(!dl_line_parse(&line, "step 1024 2.5", 13, &e) &&
			line.kind == DL_LINE_STEP && line.tokens == 1024 &&
			line.loss == 2.5,
		"a step");
	ok(!dl_line_parse(&line, "step 7 nan", 10, &e) && isnan(line.loss),
		"a loss that is none");
	ok(!dl_line_parse(&line, "error no\033", 9, &e) &&
			line.kind == DL_LINE_ERROR &&
			strcmp(line.text, "no\\x1b") == 0,
		"an error, scrubbed");
}

static void test_run(void)
{
	struct dl_host *h = start_shell(
		"[ \"$DL_NAME\" = ann ] && [ -S \"$DL_TRAINER\" ] || exit 9\n"
		"echo ready 1 >&4\n"
		"while read -r word rest <&3; do\n"
		"case $word in go) echo step 64 1.5 >&4;;\n"
		"stop) echo ok >&4; exit;; *) echo ok >&4;; esac; done",
		20 * DL_SECOND);
	struct dl_host_event ev;

	ok(next(h, &ev) == DL_HOST_READY, "ready over descriptors 3 and 4");
	dl_host_say(h, "load /x");
	dl_host_say(h, "clock 7 fresh");
	ok(next(h, &ev) == DL_HOST_ANSWER && next(h, &ev) == DL_HOST_ANSWER,
		"each command is answered");
	dl_host_say(h, "go");
	ok(next(h, &ev) == DL_HOST_STEP && ev.tokens == 64 && ev.loss == 1.5,
		"go, then a step");
	dl_host_stop(h, dl_now());
	ok(next(h, &ev) == DL_HOST_ANSWER, "stop is answered");
	ok(next(h, &ev) == DL_HOST_DIED && ev.wanted, "and it exits");
	ok(!dl_host_running(h), "nothing runs");
	dl_host_free(h);
}

/* Orders that come before others are answered. */
static void test_ahead(void)
{
	struct dl_host *h = start_shell(
		"echo ready 1 >&4; read -r a <&3; read -r b <&3; read -r c <&3\n"
		"echo ok >&4; echo ok >&4; echo step 2 1 >&4; read -r a <&3\n"
		"read -r b <&3; echo ok >&4; echo step 3 1 >&4; read -r a <&3\n"
		"read -r b <&3; echo step 4 1 >&4; echo ok >&4; sleep 60",
		20 * DL_SECOND);
	struct dl_host_event ev;

	next(h, &ev);
	dl_host_say(h, "send 0 /x");
	dl_host_say(h, "send 1 /y");
	dl_host_say(h, "go");
	ok(next(h, &ev) == DL_HOST_ANSWER && next(h, &ev) == DL_HOST_ANSWER &&
			next(h, &ev) == DL_HOST_STEP && ev.tokens == 2,
		"go behind orders that are not answered");
	dl_host_ask(h, "save /x");
	dl_host_say(h, "go");
	ok(next(h, &ev) == DL_HOST_ANSWER && next(h, &ev) == DL_HOST_STEP &&
			ev.tokens == 3,
		"and behind one that may be refused");
	dl_host_say(h, "go");
	dl_host_say(h, "clock 4");
	ok(next(h, &ev) == DL_HOST_STEP && ev.tokens == 4 &&
			next(h, &ev) == DL_HOST_ANSWER,
		"what comes after go is answered after its step");
	dl_host_free(h);
	h = start_shell("echo ready 1 >&4; read -r a <&3; read -r b <&3\n"
			"echo step 1 1 >&4; echo ok >&4; sleep 60",
		20 * DL_SECOND);
	next(h, &ev);
	dl_host_say(h, "clock 1");
	dl_host_say(h, "go");
	ok(next(h, &ev) == DL_HOST_DIED && strstr(ev.err.text, "out of turn"),
		"a step before the answer is a fault");
	dl_host_free(h);
}

static void test_hang(void)
{
	struct dl_host_event ev;
	struct dl_host *h;

	silence_ns = DL_SECOND / 5;
	h = start_shell("exec sleep 60", 20 * DL_SECOND);
	ok(next(h, &ev) == DL_HOST_DIED && strstr(ev.err.text, "no ready"),
		"a trainer that is never ready hangs");
	dl_host_free(h);
	silence_ns = 2 * DL_SECOND;
	h = start_shell("echo ready 1 >&4; exec sleep 60", 20 * DL_SECOND);
	ok(next(h, &ev) == DL_HOST_READY, "another is");
	dl_host_say(h, "go");
	ok(next(h, &ev) == DL_HOST_DIED && strstr(ev.err.text, "no step") &&
			!ev.wanted,
		"but makes no step");
	dl_host_free(h);
	silence_ns = 60 * DL_SECOND;
}

/* Exports and the like may fail: the trainer is not the worse for it. */
static void test_refusal(void)
{
	struct dl_host *h = start_shell(
		"echo ready 1 >&4\n"
		"while read -r word rest <&3; do\n"
		"case $word in export) echo error no room >&4;;\n"
		"go) echo step 1 1 >&4;; *) echo ok >&4;; esac; done",
		20 * DL_SECOND);
	struct dl_host_event ev;

	next(h, &ev);
	dl_host_say(h, "load /x");
	dl_host_ask(h, "export /x");
	dl_host_say(h, "clock 7");
	ok(next(h, &ev) == DL_HOST_ANSWER && next(h, &ev) == DL_HOST_REFUSED &&
			strstr(ev.err.text, "no room"),
		"an order that may be refused is");
	ok(next(h, &ev) == DL_HOST_ANSWER, "and the next is answered");
	dl_host_say(h, "go");
	ok(next(h, &ev) == DL_HOST_STEP, "it trains on");
	dl_host_ask(h, "save /x");
	dl_host_say(h, "export /x");
	ok(next(h, &ev) == DL_HOST_ANSWER && next(h, &ev) == DL_HOST_DIED,
		"the others must not be refused");
	dl_host_free(h);
}

/* A trainer that must be ended: what it does, and how the reason reads. */
static void dies(const char *what, const char *script, const char *says)
{
	struct dl_host *h = start_shell(script, 20 * DL_SECOND);
	struct dl_host_event ev;
	int kind = next(h, &ev);

	if (kind == DL_HOST_READY) {
		dl_host_say(h, "load /x");
		kind = next(h, &ev);
	}
	if (kind == DL_HOST_ANSWER)
		kind = next(h, &ev);
	if (!ok(kind == DL_HOST_DIED && !ev.wanted && strstr(ev.err.text, says),
		    "%s", what))
		printf("# kind %d: %s\n", kind, ev.err.text);
	dl_host_free(h);
}

static void test_faults(void)
{
	dies("a trainer that exits", "exit 3", "status 3");
	dies("a trainer that is killed", "kill -9 $$", "signal 9");
	dies("garbage", "echo hello >&4; exec sleep 60", "hello");
	dies("a step before go",
		"echo ready 1 >&4; echo step 1 1 >&4;"
		"exec sleep 60",
		"out of turn");
	dies("an answer too many",
		"echo ready 1 >&4; read -r line <&3;"
		"echo ok >&4; echo ok >&4; sleep 60",
		"out of turn");
	dies("another protocol", "echo ready 2 >&4; exec sleep 60", "protocol");
	dies("an error",
		"echo ready 1 >&4; read -r line <&3;"
		"echo error out of memory >&4; exec sleep 60",
		"out of memory");
	dies("a line without end",
		"head -c 5000 /dev/zero | tr '\\0' a >&4; sleep 60", "bytes");
	dies("a closed end", "echo ready 1 >&4; exec 3>&- 4>&-; exec sleep 60",
		"closed its end");
}

static void test_stubborn(void)
{
	struct dl_host *h = start_shell("trap '' TERM; echo ready 1 >&4;"
					"while :; do sleep 1; done",
		1);
	struct dl_host_event ev;

	next(h, &ev);
	dl_host_stop(h, dl_now());
	ok(next(h, &ev) == DL_HOST_DIED && ev.wanted,
		"one that ignores stop and SIGTERM is killed");
	ok(!dl_host_start(h, &(struct dl_err){0}) &&
			next(h, &ev) == DL_HOST_READY,
		"and can be started again");
	dl_host_free(h);
}

/* Orders are not kept until the caller has time for the trainer. */
static void test_at_once(void)
{
	struct dl_host *h = start_shell("echo ready 1 >&4; read -r line <&3\n"
					": >\"$DL_TRAINER.heard\"; echo ok >&4;"
					"exec sleep 60",
		1);
	char *heard = dl_sprintf("%s/trainer.heard", scratch.path);
	int64_t end = dl_now() + 20 * DL_SECOND;
	struct dl_host_event ev;

	next(h, &ev);
	dl_host_say(h, "load /x");
	while (access(heard, F_OK) && dl_now() < end)
		usleep(1000);
	ok(!access(heard, F_OK), "an order is heard at once");
	dl_host_free(h);
	free(heard);
}

/* It takes longer than one has that closes its end unasked. */
static void test_launcher(void)
{
	struct dl_host *h = start_shell("echo ready 1 >&4; read -r line <&3\n"
					"echo ok >&4; exec 3>&- 4>&-;"
					"sleep 2.5",
		20 * DL_SECOND);
	struct dl_host_event ev;

	next(h, &ev);
	dl_host_stop(h, dl_now());
	ok(next(h, &ev) == DL_HOST_ANSWER && next(h, &ev) == DL_HOST_DIED &&
			!ev.err.code,
		"a launcher that is slow to see the end has its time");
	dl_host_free(h);
}

/* This program as a trainer that uses the socket and closes 3 and 4. */
static int be_trainer(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char line[64];

	close(3);
	close(4);
	strcpy(a.sun_path, getenv("DL_TRAINER"));
	if (connect(fd, (struct sockaddr *)&a, sizeof a))
		return 1;
	if (write(fd, "ready", 5) != 5 || usleep(10000) ||
		write(fd, " 1\n", 3) != 3)
		return 1;
	if (read(fd, line, sizeof line) != 8 || write(fd, "ok\n", 3) != 3)
		return 1;
	return read(fd, line, sizeof line) == 5 ? 0 : 1; /* stop */
}

static void test_socket(void)
{
	char role[] = "trainer";
	char *const command[] = {(char *)self, role, NULL};
	struct dl_host *h = start(command, 20 * DL_SECOND);
	struct dl_host_event ev;

	ok(next(h, &ev) == DL_HOST_READY, "ready over the socket, in pieces");
	dl_host_say(h, "load /x");
	ok(next(h, &ev) == DL_HOST_ANSWER, "and an answer");
	dl_host_stop(h, dl_now());
	ok(next(h, &ev) == DL_HOST_DIED && ev.wanted, "and the end");
	dl_host_free(h);
}

static void test_missing(void)
{
	char missing[] = "/nonexistent/trainer";
	char *const command[] = {missing, NULL};
	static const char *const none[] = {NULL};
	struct dl_host_config c = {&loop, command, none, scratch.path, 1, 0};
	struct dl_err e;
	struct dl_host *h = dl_host_new(&c, &e);

	ok(h && dl_host_start(h, &e) == DL_NOINPUT,
		"a command that is not there");
	dl_host_free(h);
}

static void test_scratch(void)
{
	struct dl_scratch other = DL_SCRATCH_INIT, third = DL_SCRATCH_INIT;
	struct dl_err e;
	char *left, *file;

	ok(!dl_scratch_open(&other, scratch.path, 4096, &e), "a folder");
	file = dl_scratch_file(&other, "params");
	ok(!dl_write_file(file, "x", 1, &e), "with a file");
	left = dl_strdup(other.path);
	ok(!dl_scratch_open(&third, scratch.path, 4096, &e) &&
			access(left, F_OK) == 0,
		"a second learner leaves it alone while the first lives");
	dl_scratch_remove(&third);
	close(other.fd);
	ok(!dl_scratch_open(&third, scratch.path, 4096, &e) &&
			access(left, F_OK) != 0,
		"and removes what a killed one left");
	dl_scratch_remove(&third);
	ok(dl_scratch_open(&third, scratch.path, UINT64_C(1) << 62, &e) ==
			DL_CANTCREAT,
		"no room: %s", e.text);
	free(other.path);
	free(left);
	free(file);
}

int main(int argc, char **argv)
{
	static const int caught[] = {SIGCHLD};
	struct dl_err e;

	self = argv[0];
	if (argc > 1)
		return be_trainer();
	if (dl_scratch_open(&scratch, NULL, 4096, &e) ||
		dl_signals_open(caught, 1, &signals, &e)) {
		printf("Bail out! %s\n", e.text);
		return 1;
	}
	dl_loop_set(&loop, signals, POLLIN, drop_signals, NULL);
	test_lines();
	test_run();
	test_ahead();
	test_refusal();
	test_hang();
	test_faults();
	test_stubborn();
	test_at_once();
	test_launcher();
	test_socket();
	test_missing();
	test_scratch();
	dl_loop_release(&loop);
	dl_scratch_remove(&scratch);
	return done_testing();
}
