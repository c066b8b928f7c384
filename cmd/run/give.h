/*
 * Giving the core a push that lies beside the store, and loading it to be
 * merged.
 */
#ifndef CMD_RUN_GIVE_H
#define CMD_RUN_GIVE_H

#include "cmd/run/pass.h"
#include "cmd/run/roll.h"

/* DL_NO, and what is missing, when its learner has yet to explain it: files
 * may come in any order. */
int give_check(const struct pass *p, const struct stashed *s, struct dl_err *e);
/* The same when a push of its fragment that was made before it is missing. */
int give_in_order(
	const struct pass *p, const struct stashed *s, struct dl_err *e);
/* Of a process that is gone, whose learner explains nothing any more: tells the
 * core as much as the push says, if it needs to hear it. */
void give_explain(struct pass *p, const struct stashed *s);
/* Tells the core: 65 when it does not hold its fragment, or nobody knows who
 * made it. The core's answer is p->book.last. */
int give(struct pass *p, const struct stashed *s, uint64_t id,
	struct dl_err *e);

/* All that lies there and the core does not hold, as after a restore. */
int give_again(struct pass *p, const struct roll *r, struct dl_err *e);

/* Into memory, for a merge. 65 or 66 when it is not what it was. */
int give_load(struct pass *p, uint64_t id, struct dl_err *e);

#endif
