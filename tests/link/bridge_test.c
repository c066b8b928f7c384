/*
 * A bridge in a process of its own: all bytes cross, both ways at once, and
 * the ends of both sides are told.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "link/bridge.h"
#include "tests/tap.h"

enum { MUCH = 8 << 20, PIECE = 1 << 16 };

/* The bridge stands between `near`, a pair of pipes as a shell makes them or
 * one socket, and `far`, a socket. */
struct scene {
	int in, out; /* what we write to it, read from it */
	int far;
	pid_t pid;
};

static void die(const char *what)
{
	ok(0, "%s", what);
	exit(1);
}

static void stage(struct scene *s, int pipes, const char *first)
{
	int near[2], back[2], far[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, far))
		die("socketpair");
	if (pipes ? pipe(near) || pipe(back)
		  : socketpair(AF_UNIX, SOCK_STREAM, 0, near))
		die("pipe");
	if (!pipes) {
		back[0] = near[1];
		back[1] = near[0];
	}
	*s = (struct scene){near[1], back[0], far[0], fork()};
	if (s->pid == 0) {
		struct dl_buf bytes = DL_BUF_INIT;
		struct dl_err e;

		close(far[0]);
		close(near[1]);
		if (pipes)
			close(back[0]);
		alarm(60);
		fcntl(far[1], F_SETFL, O_NONBLOCK);
		dl_buf_str(&bytes, first);
		_exit(dl_bridge_run(near[0], back[1], far[1], &bytes, &e));
	}
	close(far[1]);
	close(near[0]);
	if (pipes)
		close(back[1]);
}

static int ends(const struct scene *s)
{
	int status;

	return waitpid(s->pid, &status, 0) == s->pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* Any position of the stream has a byte of its own, nearly. */
static unsigned char byte_at(size_t i)
{
	return (unsigned char)(i * 2654435761u >> 13);
}

struct flow {
	int from, to;
	size_t sent, got, wrong;
};

static void push_some(struct flow *f)
{
	unsigned char piece[PIECE];
	size_t n = MUCH - f->sent < PIECE ? MUCH - f->sent : PIECE;
	ssize_t wrote;

	for (size_t i = 0; i < n; i++)
		piece[i] = byte_at(f->sent + i);
	wrote = write(f->from, piece, n < 4096 ? n : 4096);
	if (wrote > 0)
		f->sent += (size_t)wrote;
}

static void pull_some(struct flow *f)
{
	unsigned char piece[PIECE];
	ssize_t n = read(f->to, piece, sizeof piece);

	for (ssize_t i = 0; i < n; i++)
		f->wrong += piece[i] != byte_at(f->got + (size_t)i);
	if (n > 0)
		f->got += (size_t)n;
}

/* Both at once: neither way waits for the other, however full one is. */
static void exchange(struct flow f[2])
{
	while (f[0].got < MUCH || f[1].got < MUCH) {
		struct pollfd p[] = {
			{f[0].sent < MUCH ? f[0].from : -1, POLLOUT, 0},
			{f[1].sent < MUCH ? f[1].from : -1, POLLOUT, 0},
			{f[0].to, POLLIN, 0},
			{f[1].to, POLLIN, 0},
		};

		if (poll(p, 4, 30000) <= 0)
			return;
		for (int i = 0; i < 2; i++) {
			if (p[i].revents)
				push_some(&f[i]);
			if (p[2 + i].revents)
				pull_some(&f[i]);
		}
	}
}

static void test_flood(int pipes)
{
	const char *name = pipes ? "pipes" : "a socket";
	struct scene s;
	struct flow f[2];

	stage(&s, pipes, "");
	f[0] = (struct flow){.from = s.in, .to = s.far};
	f[1] = (struct flow){.from = s.far, .to = s.out};
	exchange(f);
	ok(f[0].got == MUCH && !f[0].wrong, "%s: all of it goes up", name);
	ok(f[1].got == MUCH && !f[1].wrong, "%s: and comes down", name);
	if (pipes)
		close(s.in);
	else
		shutdown(s.in, SHUT_WR);
	ok(read(s.far, &f, 1) == 0, "%s: the end is told", name);
	ok(send(s.far, "bye", 3, 0) == 3, "%s: the peer's last words", name);
	close(s.far);
	ok(read(s.out, &f, 4) == 3 && read(s.out, &f, 1) == 0,
		"%s: get through, and their end", name);
	ok(ends(&s), "%s: then it is over", name);
	close(s.out);
}

/* The one way is full, and nobody reads it: the other goes on. */
static void test_full(void)
{
	struct scene s;
	char piece[4096] = "", byte;
	size_t wrote = 0;

	stage(&s, 1, "");
	for (;;) {
		struct pollfd p = {.fd = s.in, .events = POLLOUT};

		if (poll(&p, 1, 300) <= 0)
			break;
		wrote += (size_t)write(s.in, piece, sizeof piece);
	}
	ok(wrote < (2 << 20), "it holds little: %zu bytes", wrote);
	ok(send(s.far, "x", 1, 0) == 1 && read(s.out, &byte, 1) == 1 &&
			byte == 'x',
		"while one way is full the other works");
	close(s.far);
	ok(read(s.out, &byte, 1) == 0 && ends(&s), "the peer's end ends it");
	close(s.in);
	close(s.out);
}

static void test_first(void)
{
	struct scene s;
	char text[16] = "";

	stage(&s, 1, "before");
	ok(write(s.in, "+after", 6) == 6, "more is said");
	for (size_t n = 0; n < 12;) {
		ssize_t got = read(s.far, text + n, 12 - n);

		if (got <= 0)
			break;
		n += (size_t)got;
	}
	ok(strcmp(text, "before+after") == 0, "what was read already is first");
	close(s.out);
	ok(ends(&s), "it ends when nobody reads");
	ok(recv(s.far, text, 1, 0) <= 0, "and the peer is told");
	close(s.in);
	close(s.far);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_flood(0);
	test_flood(1);
	test_full();
	test_first();
	return done_testing();
}
