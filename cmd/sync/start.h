/*
 * What a core is made of: the options of the run as they meet its store; and
 * what its tape says.
 */
#ifndef CMD_SYNC_START_H
#define CMD_SYNC_START_H

#include "cmd/sync/globals.h"
#include "cmd/sync/options.h"
#include "state/store.h"
#include "state/tape.h"

/* A store keeps the run's name and H; options may only agree with them: 0, or
 * 64 with what differs. */
int sync_check_run(const struct sync_options *o, const struct dl_store_run *run,
	struct dl_err *e);

/* The start of a core, and of its tape, for a new run; what it is restored
 * from is the caller's to add. */
void sync_start(struct dl_tape_start *start, const struct sync_options *o,
	const struct dl_store *store);

/* Puts the event on the tape, before the core of that trail gets it; with
 * DL_EV_MERGED what the store holds since, and how alike the pushes were. */
void sync_note(struct dl_tape *tape, const struct dl_sync_event *ev,
	const struct globals *g, const struct dl_trail *trail, int64_t wall);

#endif
