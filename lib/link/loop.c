#include "link/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

void dl_loop_release(struct dl_loop *l)
{
	free(l->fd);
	free(l->watch);
	free(l->place);
	memset(l, 0, sizeof(*l));
}

static size_t new_place(struct dl_loop *l, int fd)
{
	size_t had = l->places;

	if ((size_t)fd >= l->places) {
		l->places = (size_t)fd + 64;
		l->place = dl_resize(l->place, l->places, sizeof(*l->place));
		memset(l->place + had, 0,
			(l->places - had) * sizeof(*l->place));
	}
	if (l->n == l->cap) {
		l->cap = 2 * l->cap + 16;
		l->fd = dl_resize(l->fd, l->cap, sizeof(*l->fd));
		l->watch = dl_resize(l->watch, l->cap, sizeof(*l->watch));
	}
	return l->place[fd] = ++l->n;
}

void dl_loop_set(
	struct dl_loop *l, int fd, short events, dl_loop_fn *fn, void *ctx)
{
	size_t at = (size_t)fd < l->places ? l->place[fd] : 0;

	/* poll would tell of a hang-up all the time. */
	if (!events) {
		dl_loop_remove(l, fd);
		return;
	}
	if (!at) {
		at = new_place(l, fd);
		l->fd[at - 1] = (struct pollfd){.fd = fd};
	}
	l->fd[at - 1].events = events;
	l->watch[at - 1] = (struct dl_loop_watch){fn, ctx};
}

/* Only marked, since a call may be walking over the list; poll passes over
 * negative descriptors. */
void dl_loop_remove(struct dl_loop *l, int fd)
{
	if (fd < 0 || (size_t)fd >= l->places || !l->place[fd])
		return;
	l->fd[l->place[fd] - 1].fd = -1;
	l->fd[l->place[fd] - 1].revents = 0;
	l->place[fd] = 0;
}

static void compact(struct dl_loop *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		if (l->fd[i].fd < 0)
			continue;
		l->fd[n] = l->fd[i];
		l->watch[n] = l->watch[i];
		n++;
		l->place[l->fd[n - 1].fd] = n;
	}
	l->n = n;
}

/* Rounded up, so that a deadline has passed when poll returns. */
static int milliseconds(int64_t until)
{
	int64_t left;

	if (until == INT64_MAX)
		return -1;
	left = until - dl_now();
	if (left <= 0)
		return 0;
	if (left > 60 * DL_SECOND)
		return 60000;
	return (int)((left + 999999) / 1000000);
}

int dl_loop_once(struct dl_loop *l, int64_t until, struct dl_err *e)
{
	size_t i, n;

	compact(l);
	n = l->n;
	if (poll(l->fd, n, milliseconds(until)) < 0) {
		if (errno == EINTR)
			return 0;
		return dl_fail_sys(e, DL_OSERR, "poll");
	}
	for (i = 0; i < n; i++)
		if (l->fd[i].revents) {
			struct pollfd ready = l->fd[i];
			struct dl_loop_watch watch = l->watch[i];

			watch.fn(watch.ctx, ready.fd, ready.revents);
		}
	return 0;
}
