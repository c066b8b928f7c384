#include "raw.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench.h"
#include "link/tcp.h"

enum { MOST = 64, PIECE = 1 << 20 };

/* One end of all connections. */
struct end {
	unsigned n;
	struct pollfd fd[MOST];
	size_t sent[MOST], got[MOST];
	size_t fragment, total; /* bytes */
	int answers;		/* sends what it has from all */
	unsigned char *memory;	/* PIECE bytes */
};

static int tcp_socket(void)
{
	const struct dl_tcp tcp = {.congestion = NULL};
	unsigned lowat = UINT32_MAX; /* what the system has by itself */
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct dl_err e;

	bench_need(!dl_tcp_apply(&tcp, fd, &e), e.text);
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
	return fd;
}

static void connect_all(struct end *here, struct end *there)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int listener = tcp_socket();

	bench_need(!bind(listener, (struct sockaddr *)&a, n) &&
			   !listen(listener, MOST) &&
			   !getsockname(listener, (struct sockaddr *)&a, &n),
		"listen");
	for (unsigned i = 0; i < here->n; i++) {
		here->fd[i].fd = tcp_socket();
		bench_need(!connect(here->fd[i].fd, (struct sockaddr *)&a, n),
			"connect");
		there->fd[i].fd = accept(listener, NULL, NULL);
		bench_need(there->fd[i].fd >= 0, "accept");
		fcntl(here->fd[i].fd, F_SETFL, O_NONBLOCK);
		fcntl(there->fd[i].fd, F_SETFL, O_NONBLOCK);
	}
	close(listener);
}

/* How many bytes may be sent by now. */
static size_t ready(const struct end *e)
{
	size_t least = e->total;

	for (unsigned i = 0; e->answers && i < e->n; i++)
		if (e->got[i] < least)
			least = e->got[i];
	return least / e->fragment * e->fragment;
}

static void receive(struct end *e, unsigned i)
{
	ssize_t n = recv(e->fd[i].fd, e->memory, PIECE, 0);

	if (n > 0)
		e->got[i] += (size_t)n;
}

static void give(struct end *e, unsigned i, size_t most)
{
	size_t left = most - e->sent[i];
	ssize_t n = send(e->fd[i].fd, e->memory, left < PIECE ? left : PIECE,
		MSG_NOSIGNAL);

	if (n > 0)
		e->sent[i] += (size_t)n;
}

/* Works till all has come and gone. */
static void work(struct end *e)
{
	for (;;) {
		size_t most = ready(e);
		int over = 1;

		for (unsigned i = 0; i < e->n; i++) {
			e->fd[i].events = (e->got[i] < e->total ? POLLIN : 0) |
					  (e->sent[i] < most ? POLLOUT : 0);
			over &= e->got[i] == e->total && e->sent[i] == e->total;
		}
		if (over)
			return;
		bench_need(poll(e->fd, e->n, 10000) > 0, "poll");
		for (unsigned i = 0; i < e->n; i++) {
			if (e->fd[i].revents & POLLIN)
				receive(e, i);
			if (e->fd[i].revents & POLLOUT)
				give(e, i, most);
		}
	}
}

static void close_all(struct end *e)
{
	for (unsigned i = 0; i < e->n; i++)
		close(e->fd[i].fd);
}

/* A fragment there and back first, so that connections and memory are as warm
 * as those of who has sent for hours. Returns when the rest began. */
static double warm_up(struct end *e)
{
	size_t total = e->total;

	e->total = e->fragment;
	work(e);
	e->total = total;
	memset(e->sent, 0, sizeof e->sent);
	memset(e->got, 0, sizeof e->got);
	return bench_now();
}

/* The learners' other end; tells how long it takes once it is warm. */
static void answer(struct end *there, int result)
{
	double from, took;

	there->answers = 1;
	there->memory = dl_big_alloc(PIECE);
	from = warm_up(there);
	work(there);
	took = bench_now() - from;
	if (write(result, &took, sizeof took) != sizeof took)
		_exit(1);
}

double raw_sync(unsigned learners, size_t fragments, size_t bytes)
{
	struct end here = {.n = learners,
		.fragment = bytes,
		.total = fragments * bytes,
		.memory = dl_big_alloc(PIECE)};
	struct end there = here;
	double from, took, others;
	int result[2];
	pid_t pid;

	memset(here.memory, 1, PIECE);
	connect_all(&here, &there);
	bench_need(!pipe(result), "pipe");
	pid = fork();
	bench_need(pid >= 0, "fork");
	if (!pid) {
		close_all(&here);
		answer(&there, result[1]);
		_exit(0);
	}
	close_all(&there);
	from = warm_up(&here);
	work(&here);
	took = bench_now() - from;
	bench_need(read(result[0], &others, sizeof others) == sizeof others,
		"the other end");
	close(result[0]);
	close(result[1]);
	close_all(&here);
	waitpid(pid, NULL, 0);
	dl_big_free(here.memory, PIECE);
	return took + bench_others(others);
}
