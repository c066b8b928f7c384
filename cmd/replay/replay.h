/*
 * dl-sync replay: a run again, from its tape: what the core decided, and with
 * the pushes that were recorded what came of it, into a new store.
 */
#ifndef CMD_REPLAY_REPLAY_H
#define CMD_REPLAY_REPLAY_H

#include "cmd/sync/options.h"

struct replay_options {
	struct sync_options sync; /* what the tape knows is taken from it */
	const char *tape;
	const char *record;  /* NULL: decisions only */
	const char *from;    /* checkpoints that it went on from; NULL: none */
	const char *without; /* a learner that is left out; NULL: nobody */
};

/* 0, or a code with e set: DL_NO at the first difference. A line a merge on
 * standard output. */
int replay_run(struct replay_options *o, struct dl_err *e);

#endif
