#include "link/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/* What may wait in the kernel, unsent: a heartbeat waits behind no
	 * more than this, and it is enough to keep a fast link busy. */
	NOTSENT_LOWAT = 128 * 1024,
	/* A very fast one runs dry with that before its sender wakes. */
	FAST_LOWAT = 2 << 20,
	FAST = 8 << 20,	   /* bytes in a window, or more: 800 MB/s */
	WINDOW = 10000000, /* nanoseconds */
	/* How often a connection is asked for again: an address where nobody
	 * answers is given up after some seconds, for the next one. */
	SYN_AGAIN = 2,
};

static int set_congestion(const char *name, int fd, struct dl_err *e)
{
	char shown[64];

	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
		    (socklen_t)strlen(name)) == 0)
		return 0;
	dl_scrub(shown, sizeof(shown), name, strlen(name));
	if (errno == ENOENT)
		return dl_fail(e, DL_USAGE,
			"this kernel has no congestion control \"%s\"", shown);
	return dl_fail_sys(e, DL_USAGE, "congestion control \"%s\"", shown);
}

/* The kernel takes less without a word; what it took it shows doubled. */
static int set_buffer(
	int fd, int option, int bytes, const char *limit, struct dl_err *e)
{
	socklen_t n = sizeof(int);
	int got = 0;

	setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes));
	getsockopt(fd, SOL_SOCKET, option, &got, &n);
	if (got / 2 >= bytes)
		return 0;
	return dl_fail(e, DL_USAGE,
		"buffers of %d bytes: this kernel allows %d (%s)", bytes,
		got / 2, limit);
}

int dl_tcp_apply(const struct dl_tcp *t, int fd, struct dl_err *e)
{
	int on = 1, lowat = NOTSENT_LOWAT, again = SYN_AGAIN, code = 0;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
	setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &again, sizeof(again));
	if (t->congestion)
		code = set_congestion(t->congestion, fd, e);
	if (!code && t->buffers)
		code = set_buffer(
			fd, SO_SNDBUF, t->buffers, "net.core.wmem_max", e);
	if (!code && t->buffers)
		code = set_buffer(
			fd, SO_RCVBUF, t->buffers, "net.core.rmem_max", e);
	return code;
}

void dl_tcp_took(struct dl_tcp_pace *p, int fd, size_t n, int64_t now)
{
	int fast, lowat;

	p->bytes += n;
	if (now - p->since < WINDOW)
		return;
	fast = p->bytes >= FAST && now - p->since < 2 * WINDOW;
	lowat = fast ? FAST_LOWAT : NOTSENT_LOWAT;
	if (fast != p->fast)
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat,
			sizeof(lowat));
	*p = (struct dl_tcp_pace){now, 0, fast};
}

int dl_tcp_check(const struct dl_tcp *t, struct dl_err *e)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), code;

	if (fd < 0)
		return dl_fail_sys(e, DL_OSERR, "socket");
	code = dl_tcp_apply(t, fd, e);
	close(fd);
	return code;
}
