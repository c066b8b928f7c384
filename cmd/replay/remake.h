/*
 * The global parameters of a run made again, merge by merge, from the model
 * that it began with and the pushes that were recorded, in a new store.
 */
#ifndef CMD_REPLAY_REMAKE_H
#define CMD_REPLAY_REMAKE_H

#include "cmd/replay/recorded.h"
#include "cmd/sync/globals.h"
#include "state/tape.h"

struct remake {
	struct sync_options *options; /* what a tape knows is taken from it */
	const char *record;
	struct recorded recorded;
	struct globals globals; /* from remake_begin or _from on */
};

/* Reads what was recorded. Close it also after a failure. */
int remake_open(struct remake *r, struct sync_options *o, const char *record,
	struct dl_err *e);
void remake_close(struct remake *r);

/* Makes the store of a tape's first start. */
int remake_begin(
	struct remake *r, const struct dl_tape_start *start, struct dl_err *e);
/* The syncer has gone on from the checkpoint at path, in the epoch of that
 * time: the store is made of it, in place of what was there. */
int remake_from(struct remake *r, const struct dl_tape_start *start,
	const char *path, int64_t at, struct dl_err *e);
/* The syncer has started again, with that state: its pushes that were not
 * merged come once more. */
int remake_restart(
	struct remake *r, const struct dl_sync_saved *risen, struct dl_err *e);

/* The push of that event comes, as it was recorded; one that is missing is
 * missed by the merge that needs it. */
int remake_push(
	struct remake *r, const struct dl_sync_event *ev, struct dl_err *e);
void remake_release(struct remake *r, uint64_t push);
/* That merge is made, and committed with saved; one of no parts changes
 * nothing but the version. */
int remake_merge(struct remake *r, const struct dl_sync_action *a,
	const struct dl_sync_saved *saved, struct dl_err *e);

#endif
