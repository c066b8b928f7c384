/*
 * How tcp sockets are set up.
 */
#ifndef DL_LINK_TCP_H
#define DL_LINK_TCP_H

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

#endif
