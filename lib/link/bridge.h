/*
 * A bridge: bytes carried both ways between this process's input and output
 * and a socket, for peers that reach each other only through a pipe.
 */
#ifndef DL_LINK_BRIDGE_H
#define DL_LINK_BRIDGE_H

#include "base/err.h"
#include "base/mem.h"

/*
 * Carries `first`, which has been read already and is emptied, and then all of
 * in to peer, and all of peer to out, neither way waiting for the other, with a
 * fixed buffer a way. 0 when peer has closed and all of it is in out, when
 * nobody reads out any more, or when peer has not closed some seconds after the
 * end of in; 71 when the system has no more to give. in and out may be one
 * socket, and block again afterwards if they did before; peer is non-blocking.
 * SIGPIPE is to be ignored.
 */
int dl_bridge_run(
	int in, int out, int peer, struct dl_buf *first, struct dl_err *e);

#endif
