/*
 * Commands at the other end of a link: they talk through one socket, and they
 * and what they started are gone when the connection is.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "link/address.h"
#include "tests/tap.h"

static int start(struct dl_child *c, const char *link)
{
	struct dl_address a;
	struct dl_err e = {0};
	int fd;

	if (dl_address_parse(&a, link, &e) ||
		dl_address_connect(&a, DL_INSECURE_NO, &fd, c, &e))
		exit(ok(0, "%s: %s", link, e.text));
	return fd;
}

/* Reads all there is until the end; how much. */
static size_t slurp(int fd, char *out, size_t size)
{
	size_t n = 0;
	ssize_t got;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		poll(&p, 1, -1);
		got = recv(fd, out + n, size - n, 0);
		if (got <= 0)
			return n;
		n += (size_t)got;
	}
}

static void test_talk(void)
{
	struct dl_child c;
	char back[16];
	int fd = start(&c, "exec:cat; exit 3");

	ok(send(fd, "hello", 5, 0) == 5, "a command is told something");
	shutdown(fd, SHUT_WR);
	ok(slurp(fd, back, sizeof back) == 5 && !memcmp(back, "hello", 5),
		"and says it back, to the end");
	close(fd);
	dl_child_wait(&c);
	ok(c.pid == 0 && dl_child_exit(&c) == 3, "its status is known");
}

static void test_explain(const char *link, const char *why)
{
	struct dl_err e = {0};
	struct dl_child c;
	char back[16];
	int fd = start(&c, link);

	slurp(fd, back, sizeof back);
	close(fd);
	dl_child_wait(&c);
	dl_fail(&e, DL_UNAVAILABLE, "closed");
	dl_child_explain(&c, &e);
	ok(strcmp(e.text, why) == 0, "%s: %s", link, e.text);
	dl_fail(&e, DL_NOPERM, "not you");
	dl_child_explain(&c, &e);
	ok(strcmp(e.text, "not you") == 0, "what the peer says counts more");
}

/* The pid that a command writes as its first line. */
static pid_t read_pid(int fd)
{
	char line[32] = "";
	size_t n = 0;

	while (n + 1 < sizeof line && !strchr(line, '\n')) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		poll(&p, 1, -1);
		if (recv(fd, line + n, 1, 0) != 1)
			break;
		n++;
	}
	return (pid_t)atoi(line);
}

/* Dead, or a zombie that init has not taken yet: it answers no more. */
static int is_dead(int fd)
{
	char byte;

	return slurp(fd, &byte, 1) == 0;
}

/* Its grandchild holds a pipe to us, whose end we see when it is gone. */
static void test_group(const char *link, const char *what)
{
	struct dl_child c;
	int life[2], fd;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, life) || dup2(life[1], 9) < 0)
		exit(ok(0, "socketpair"));
	close(life[1]);
	fd = start(&c, link);
	close(9);
	pid = read_pid(fd);
	ok(pid > 0 && kill(pid, 0) == 0, "%s: runs", what);
	close(fd);
	dl_child_wait(&c);
	ok(is_dead(life[0]), "%s: ends with the connection", what);
	ok(dl_child_exit(&c) == -1, "%s: by our signal", what);
	close(life[0]);
}

static void test_kill(void)
{
	struct dl_child c;
	int fd = start(&c, "exec:trap '' TERM; echo $$; exec sleep 1000");
	pid_t pid = read_pid(fd);

	dl_child_kill(&c);
	ok(c.pid == 0 && kill(pid, 0) < 0 && errno == ESRCH,
		"killed at once, and reaped");
	dl_child_kill(&c);
	ok(dl_child_end(&c, 0) == 1, "there is none any more");
	close(fd);
}

int main(void)
{
	test_talk();
	test_explain("exec:no-such-command-here 2>/dev/null",
		"the command exited with status 127");
	test_explain("exec:kill -9 $$", "the command was killed by signal 9");
	test_explain("exec:exit 0", "closed");
	test_group("exec:sleep 1000 & echo $!; wait", "a child of its own");
	test_group("exec:trap '' TERM; echo $$; while :; do sleep 1000; done",
		"one that ignores SIGTERM");
	test_kill();
	return done_testing();
}
