/*
 * A learner's side of dl-trainer(7): runs a trainer program in a process group
 * of its own and talks to it in lines of text, over a unix socket (DL_TRAINER)
 * or descriptors 3 and 4, whichever the trainer uses.
 *
 * Nothing here blocks: the host keeps its descriptors in the driver's loop, and
 * the driver takes its events after each turn of it. A trainer that breaks the
 * protocol, answers `error`, closes its end, exits or hangs (owes a line for
 * too long) is ended with its whole group (unless it may refuse, dl_host_ask),
 * and DL_HOST_DIED follows when nothing of it runs any more; then dl_host_start
 * may be called again.
 */
#ifndef DL_TRAIN_HOST_H
#define DL_TRAIN_HOST_H

#include <stdint.h>

#include "base/err.h"
#include "link/loop.h"

struct dl_host_config {
	struct dl_loop *loop;
	char *const *command;	    /* argv, NULL-terminated */
	const char *const *environ; /* "NAME=value" to add, NULL-terminated */
	const char *scratch;	    /* folder for the socket */
	int64_t stop_ns;	    /* from stop to SIGTERM; then 2 s to
				     * SIGKILL */
	int64_t silence_ns;	    /* how long it may owe a line; 0: for
				     * ever */
};

enum dl_host_event_kind {
	DL_HOST_READY,	 /* the trainer said ready: give it commands */
	DL_HOST_STEP,	 /* tokens, loss: it is at a step boundary */
	DL_HOST_ANSWER,	 /* the oldest command was answered ok */
	DL_HOST_REFUSED, /* ... with an error, err, and may be */
	DL_HOST_DIED,	 /* err: why; wanted: after dl_host_stop, and then
			  * err.code is 0 when it stopped as it should */
};

struct dl_host_event {
	enum dl_host_event_kind kind;
	uint64_t tokens;
	double loss; /* NaN when unknown */
	int wanted;
	struct dl_err err;
};

struct dl_host;

/* Makes the socket; strings of c must outlive the host. */
struct dl_host *dl_host_new(const struct dl_host_config *c, struct dl_err *e);
/* Kills a trainer that still runs. */
void dl_host_free(struct dl_host *h);

/* Spawns the command; 66 when there is no such program. */
int dl_host_start(struct dl_host *h, struct dl_err *e);

/* Queues a command. `go` has no answer; the next step is. */
void dl_host_say(struct dl_host *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same of a command that the trainer may not know, or cannot obey now: when
 * it answers `error` to that, it lives on. One at a time. */
void dl_host_ask(struct dl_host *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Asks the trainer to stop at its next boundary, and sees that it does. */
void dl_host_stop(struct dl_host *h, int64_t now);
/* The same by the end of its input, once it is ready. */
void dl_host_hang_up(struct dl_host *h, int64_t now);
/* Ends its group now (SIGTERM, then SIGKILL): it failed, for that reason. */
void dl_host_fail(struct dl_host *h, int64_t now, const struct dl_err *why);

int dl_host_running(const struct dl_host *h);

/* When dl_host_next must be called at the latest, unless the loop turned or
 * SIGCHLD came; INT64_MAX: only then. */
int64_t dl_host_wake(const struct dl_host *h);
/* Moves bytes and takes the next event; 0 when there is none. */
int dl_host_next(struct dl_host *h, int64_t now, struct dl_host_event *ev);

#endif
