/*
 * The rules of dl-trainer(7) that can be tried on a trainer, one that has just
 * said ready.
 */
#ifndef CMD_CHECK_RULES_H
#define CMD_CHECK_RULES_H

#include "cmd/check/check.h"

/* Training: steps, tokens, whether they repeat, clocks. */
enum finding check_go(struct check *c, struct dl_err *e);
enum finding check_tokens(struct check *c, struct dl_err *e);
enum finding check_repeat(struct check *c, struct dl_err *e);
enum finding check_clock(struct check *c, struct dl_err *e);
enum finding check_fresh(struct check *c, struct dl_err *e);
/* What comes in: what send gives after apply. */
enum finding check_load(struct check *c, struct dl_err *e);
enum finding check_together(struct check *c, struct dl_err *e);
enum finding check_set(struct check *c, struct dl_err *e);
enum finding check_add(struct check *c, struct dl_err *e);
enum finding check_blend(struct check *c, struct dl_err *e);
enum finding check_keep(struct check *c, struct dl_err *e);
enum finding check_damaged(struct check *c, struct dl_err *e);
enum finding check_orders(struct check *c, struct dl_err *e);
/* What goes on: files of the trainer's own, files for peers, the end. */
enum finding check_save(struct check *c, struct dl_err *e);
enum finding check_export(struct check *c, struct dl_err *e);
enum finding check_prepare(struct check *c, struct dl_err *e);
enum finding check_import(struct check *c, struct dl_err *e);
enum finding check_torn(struct check *c, struct dl_err *e);
enum finding check_stop(struct check *c, struct dl_err *e);
enum finding check_end(struct check *c, struct dl_err *e);

/* Some steps, and where they led. */
enum { CHECK_STEPS = 3 };
struct check_trace {
	double loss[CHECK_STEPS];
	uint64_t tokens[CHECK_STEPS];
	float **values; /* owned */
};
/* Makes the steps. */
int check_walk(struct check *c, struct check_trace *t, struct dl_err *e);
/* 0 when other is the same, else FINDING_WRONG, and e says what differs. */
int check_same(const struct check *c, const struct check_trace *t,
	const struct check_trace *other, struct dl_err *e);
void check_trace_release(const struct check *c, struct check_trace *t);

/* What it sends is this, as values_differ has it. */
int check_expect(struct check *c, float **want, float part, struct dl_err *e);
/* It refuses "ORDER PATHREST", whose file is damaged. */
int check_refusal(struct check *c, const char *order, const char *path,
	const char *rest, struct dl_err *e);
void check_halve(const char *path);

#endif
