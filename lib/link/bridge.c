#include "link/bridge.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"

/* What is in here waits behind no heartbeat, so it is not much. */
enum { ROOM = 64 * 1024 };

static const int64_t last_words = 5 * DL_SECOND;

struct way {
	int from, to;
	struct dl_buf wait; /* read, not yet written, from `at` on */
	size_t at;
	int ended; /* nothing more comes */
};

struct bridge {
	struct way up, down; /* to the peer, from it */
	int shut;	     /* the peer has been told that up is over */
	int deaf;	     /* nobody reads what comes down */
	int64_t deadline;
};

static int is_empty(const struct way *w)
{
	return w->at == w->wait.len;
}

static int would_block(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static void take(struct way *w)
{
	ssize_t n;

	w->at = 0;
	dl_buf_clear(&w->wait);
	dl_buf_reserve(&w->wait, ROOM);
	n = read(w->from, w->wait.data, ROOM);
	if (n > 0)
		w->wait.len = (size_t)n;
	else
		w->ended = n == 0 || !would_block();
}

/* -1 when nobody takes it. */
static int give(struct way *w)
{
	ssize_t n = write(w->to, w->wait.data + w->at, w->wait.len - w->at);

	if (n < 0)
		return would_block() ? 0 : -1;
	w->at += (size_t)n;
	return 0;
}

/* A peer that takes no more may still have said why. */
static void work_up(struct bridge *b)
{
	struct way *w = &b->up;

	if (is_empty(w) && !w->ended)
		take(w);
	if (!is_empty(w) && give(w)) {
		w->at = w->wait.len;
		w->ended = 1;
	}
	if (w->ended && is_empty(w) && !b->shut) {
		shutdown(w->to, SHUT_WR);
		b->shut = 1;
		b->deadline = dl_now() + last_words;
	}
}

static void work_down(struct bridge *b)
{
	struct way *w = &b->down;

	if (is_empty(w) && !w->ended)
		take(w);
	if (!is_empty(w) && give(w))
		b->deaf = 1;
}

static int is_over(const struct bridge *b)
{
	return b->deaf || (b->down.ended && is_empty(&b->down)) ||
	       dl_now() >= b->deadline;
}

/* An end that we do not wait for is left out: it may have hung up. */
static struct pollfd watch(int fd, int wanted, short events)
{
	return (struct pollfd){.fd = wanted ? fd : -1, .events = events};
}

static int wait_for_work(struct bridge *b, struct dl_err *e)
{
	const struct way *up = &b->up, *down = &b->down;
	int64_t left = b->deadline - dl_now();
	struct pollfd p[] = {
		watch(up->from, is_empty(up) && !up->ended, POLLIN),
		watch(up->to, !is_empty(up), POLLOUT),
		watch(down->from, is_empty(down), POLLIN),
		watch(down->to, 1, is_empty(down) ? 0 : POLLOUT),
	};
	int n = poll(p, sizeof p / sizeof *p,
		b->deadline == INT64_MAX ? -1 : (int)(left / 1000000 + 1));

	if (n < 0)
		return errno == EINTR ? 0 : dl_fail_sys(e, DL_OSERR, "poll");
	b->deaf = p[3].revents & (POLLERR | POLLHUP | POLLNVAL);
	return 0;
}

int dl_bridge_run(
	int in, int out, int peer, struct dl_buf *first, struct dl_err *e)
{
	int in_flags = fcntl(in, F_GETFL), out_flags = fcntl(out, F_GETFL);
	struct bridge b = {.up = {.from = in, .to = peer, .wait = *first},
		.down = {.from = peer, .to = out},
		.deadline = INT64_MAX};
	int code = 0;

	*first = (struct dl_buf)DL_BUF_INIT;
	fcntl(in, F_SETFL, in_flags | O_NONBLOCK);
	fcntl(out, F_SETFL, out_flags | O_NONBLOCK);
	while (!code) {
		work_up(&b);
		work_down(&b);
		if (is_over(&b))
			break;
		code = wait_for_work(&b, e);
	}
	fcntl(out, F_SETFL, out_flags);
	fcntl(in, F_SETFL, in_flags);
	dl_buf_free(&b.up.wait);
	dl_buf_free(&b.down.wait);
	return code;
}
