/*
 * The learners of a spool as their own files tell of them, and what the core is
 * told of that.
 */
#ifndef CMD_RUN_ROLL_H
#define CMD_RUN_ROLL_H

#include "cmd/run/pass.h"

/* learner/NAME, when it is one that can be used. */
struct roll_learner {
	char name[DL_NAME_MAX + 1];
	int silent; /* unchanged for too long */
	struct dl_spool_learner says;
};

struct roll {
	struct roll_learner *learner; /* in byte order of names */
	size_t learners;
};

/* Reads all of them; what cannot be used is passed over. */
int roll_read(struct roll *r, struct pass *p, struct dl_err *e);
void roll_release(struct roll *r);
const struct roll_learner *roll_find(const struct roll *r, const char *name);

/* Tells the core what that learner has done, and first that it is here; or that
 * one is here that has gone since, with as many steps as it takes to believe
 * its pushes. */
void roll_tell_one(struct pass *p, const struct roll_learner *l);
void roll_join_gone(struct pass *p, const char *name, uint64_t instance,
	uint64_t clock, uint64_t steps, uint64_t tokens);

/* Tells the core of all of them, before their pushes. */
void roll_tell(const struct roll *r, struct pass *p);
/* And who has nothing more to give, after them; waits says of whom there are
 * pushes that could not be taken yet. */
void roll_tell_last(const struct roll *r, struct pass *p,
	int (*waits)(void *ctx, const char *name), void *ctx);

#endif
