/*
 * How tcp sockets are set up.
 */
#ifndef DL_LINK_TCP_H
#define DL_LINK_TCP_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What was asked for; all zeroes: as the system has it. */
struct dl_tcp {
	const char *congestion; /* congestion control, by its name */
	int buffers;		/* bytes to send and to receive, each */
};

/* Can this system do that? 64 names what it cannot. */
int dl_tcp_check(const struct dl_tcp *t, struct dl_err *e);

/* Sets up a socket, before it connects or listens: accepted ones inherit. */
int dl_tcp_apply(const struct dl_tcp *t, int fd, struct dl_err *e);

/*
 * How fast a socket takes what is written, on which depends how much the kernel
 * may hold unsent: little, so that control overtakes the rest on a slow link,
 * until it proves to be a very fast one.
 */
struct dl_tcp_pace { /* all zeroes at the beginning */
	int64_t since;
	uint64_t bytes;
	int fast;
};
/* n bytes more were taken at time now. What is no tcp is left alone. */
void dl_tcp_took(struct dl_tcp_pace *p, int fd, size_t n, int64_t now);

#endif
