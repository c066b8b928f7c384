/*
 * One round by hand: the deltas of a fragment become an update, and the update
 * an outer step, by the calls that dl-sync serve makes, so with the same bits.
 */
#ifndef CMD_MERGE_ROUND_H
#define CMD_MERGE_ROUND_H

#include "base/pool.h"
#include "cmd/merge/deltas.h"
#include "tensor/coded.h"

struct round_part;

/* Memory for one fragment, the largest, and its deltas as they came. */
struct round {
	const struct base *base;
	const struct merge_options *options;
	struct dl_pool *pool;
	float *theta, *momentum, *update; /* packed */
	size_t bytes;			  /* of each */
	struct round_part *part;	  /* a learner each */
	size_t parts;			  /* room for */
};

void round_init(struct round *r, const struct base *b, const struct deltas *d,
	const struct merge_options *o);
void round_release(struct round *r);

/*
 * Merges n > 0 deltas of fragment p into update. DL_NO when no weight remains;
 * 65 for NaN and infinity, and for weights that are not known. With -v a line
 * a learner on standard error.
 */
int round_merge(struct round *r, uint32_t p, const struct delta *d, size_t n,
	struct dl_err *e);
/* The outer step of theta, with momentum. 65 when a value or its momentum is
 * not finite any more. */
int round_step(struct round *r, uint32_t p, struct dl_err *e);

#endif
