/*
 * dl-sync run: one pass over a spool (dl-spool(5)). This file joins its parts:
 * the core, made again from its tape; the store and what lies beside it; and
 * the spool, from which events are gathered and to which the outcome goes.
 *
 * The order is what makes it safe to be killed at any point: a push is in the
 * store, and its event on the tape, before it is removed from the spool or said
 * to be taken; what a merge made is in HEAD before it is shown.
 */
#ifndef CMD_RUN_PASS_H
#define CMD_RUN_PASS_H

#include "cmd/run/book.h"
#include "cmd/run/options.h"
#include "cmd/run/report.h"
#include "cmd/run/seen.h"
#include "cmd/run/stash.h"
#include "cmd/sync/globals.h"
#include "link/spool.h"
#include "state/tape.h"

struct pass {
	const struct run_options *options;
	int spool; /* its folder */
	int fresh; /* the store was made in this pass */
	struct globals globals;
	const struct dl_store_run *run;
	const struct dl_layout *layout;
	struct dl_spool_latest latest; /* as shown before; no fragments: never */
	struct dl_sync *core;
	struct dl_trail trail; /* of what it has decided */
	struct dl_tape *tape;
	struct book book;
	struct stash stash;
	struct seen seen;
	struct report report;
	int64_t now; /* wall-clock time that never falls */
	int stopped; /* by a signal: finish what is in hand */
};

/* One whole pass: an exit code. */
int pass_run(const struct run_options *o);

/* Notes the event on the tape, gives it to the core and books what it says. */
void pass_event(struct pass *p, struct dl_sync_event *ev);
/* Has a signal asked for the end of the pass? */
int pass_stopped(struct pass *p);

#endif
