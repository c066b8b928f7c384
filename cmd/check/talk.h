/*
 * Talking to the trainer under test, one order at a time. The functions that
 * take e return 0, or FINDING_WRONG, and e says what the trainer did; once it
 * has died all do.
 */
#ifndef CMD_CHECK_TALK_H
#define CMD_CHECK_TALK_H

#include "cmd/check/check.h"

/* Starts it and waits for `ready`. */
int talk_begin(struct check *c, struct dl_err *e);
/* Ends it at once, if it runs. */
void talk_end(struct check *c);

/* An order that it must obey. */
int talk_order(struct check *c, struct dl_err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* One that it may refuse: FINDING_REFUSED then. */
int talk_ask(struct check *c, struct dl_err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* `go`: c has tokens, loss and time of the step. */
int talk_step(struct check *c, struct dl_err *e);

/* As a run begins: the model, and the clock, fresh. */
int talk_load(struct check *c, uint64_t clock, struct dl_err *e);
/* The same, after that and more, a step included, was said before any of it is
 * answered. */
int talk_load_at_once(struct check *c, struct dl_err *e);
/* c->got becomes what it sends of all fragments. */
int talk_get(struct check *c, struct dl_err *e);
/* Applies fragment p of v in that way: "set", "add", "blend A". */
int talk_apply(struct check *c, uint32_t p, float **v, const char *how,
	struct dl_err *e);
/* The same of all of them. */
int talk_apply_all(
	struct check *c, float **v, const char *how, struct dl_err *e);

/* `stop`, or the end of its input: it must exit with 0 in time. */
int talk_stop(struct check *c, int hang_up, struct dl_err *e);

/* The scratch file of that name; the caller frees it. */
char *talk_file(const struct check *c, const char *what, uint32_t p);

#endif
