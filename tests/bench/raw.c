#include "raw.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

/* The CPU that those who have ended took. */
static double children(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

double raw_sync(unsigned learners, size_t fragments, size_t bytes)
{
	struct end here = {.n = learners,
		.fragment = bytes,
		.total = fragments * bytes,
		.memory = dl_big_alloc(PIECE)};
	struct end there = here;
	double from, took, others = children();
	pid_t pid;

	there.answers = 1;
	memset(here.memory, 1, PIECE);
	connect_all(&here, &there);
	from = bench_now();
	pid = fork();
	bench_need(pid >= 0, "fork");
	if (!pid) {
		there.memory = dl_big_alloc(PIECE);
		close_all(&here);
		work(&there);
		_exit(0);
	}
	close_all(&there);
	work(&here);
	took = bench_now() - from;
	close_all(&here);
	waitpid(pid, NULL, 0);
	dl_big_free(here.memory, PIECE);
	return took + bench_others(children() - others);
}
