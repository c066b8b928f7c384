/*
 * The command of an exec: link: a process whose standard input and output are
 * one socket, ours the other end. It lives no longer than the connection.
 */
#ifndef DL_LINK_CHILD_H
#define DL_LINK_CHILD_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct dl_child {
	pid_t pid; /* of its process group too; 0 for none */
	/* private */
	enum dl_child_ending {
		DL_CHILD_LIVES,
		DL_CHILD_LEAVES,     /* it sees the end of its input */
		DL_CHILD_TERMINATED, /* SIGTERM is sent */
		DL_CHILD_KILLED
	} ending;
	int64_t deadline; /* of that; then the next */
	int status;	  /* how the last one ended, as waitpid has it */
	int ours;	  /* because we sent a signal */
};

/* Runs command by /bin/sh; *fd is a non-blocking, close-on-exec socket. 71 when
 * there is no process or descriptor to be had. */
int dl_child_start(
	struct dl_child *c, const char *command, int *fd, struct dl_err *e);

/*
 * The socket has been closed: the child gets a second to exit by itself, one
 * more after SIGTERM, then SIGKILL; what is left of its process group goes with
 * it. To be called again, whenever a child may have changed (SIGCHLD) and at
 * the deadline, until it returns 1: nothing runs (any more).
 */
int dl_child_end(struct dl_child *c, int64_t now);
/* The same, waiting. */
void dl_child_wait(struct dl_child *c);
/* At once. */
void dl_child_kill(struct dl_child *c);

/* The status that the child exited with, by itself; -1: it did not. */
int dl_child_exit(const struct dl_child *c);
/* When e says no more than that the peer is gone (69), and the child failed by
 * itself, how it ended is the better reason; not when it exited with 69, as
 * dl-sync attach does after it has said why. */
void dl_child_explain(const struct dl_child *c, struct dl_err *e);

#endif
