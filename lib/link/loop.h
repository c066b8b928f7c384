/*
 * A small poll loop: who waits for which descriptor, and for how long.
 */
#ifndef DL_LINK_LOOP_H
#define DL_LINK_LOOP_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

typedef void dl_loop_fn(void *ctx, int fd, short revents);

struct dl_loop { /* private */
	struct pollfd *fd;
	struct dl_loop_watch {
		dl_loop_fn *fn;
		void *ctx;
	} * watch; /* beside fd */
	size_t n, cap;
	size_t *place; /* by descriptor: 1 + its index in fd; 0 for none */
	size_t places;
};
#define DL_LOOP_INIT                                                           \
	{                                                                      \
		0                                                              \
	}

void dl_loop_release(struct dl_loop *l); /* closes nothing */

/* Calls fn(ctx, fd, revents) when fd is ready for events (or in error);
 * called again for the same fd it changes all of them. No events: it is not
 * looked at. */
void dl_loop_set(
	struct dl_loop *l, int fd, short events, dl_loop_fn *fn, void *ctx);
/* Before fd is closed; fine when it is not there, and from within a call. */
void dl_loop_remove(struct dl_loop *l, int fd);

/*
 * Waits once, until a descriptor is ready or the monotonic time `until`
 * (INT64_MAX: for ever), and calls who is ready. A signal ends the wait early.
 * 71 when poll fails.
 */
int dl_loop_once(struct dl_loop *l, int64_t until, struct dl_err *e);

#endif
