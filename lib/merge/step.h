/*
 * A merge and its outer step in one pass over memory: each block of deltas is
 * read once, and the update needs no memory of its own.
 */
#ifndef DL_MERGE_STEP_H
#define DL_MERGE_STEP_H

#include "merge/alike.h"
#include "merge/outer.h"

struct dl_step {
	struct dl_outer outer;
	const float *theta; /* the values before */
	float *momentum;    /* changed in place; NULL when mu is 0 */
	float *next;	    /* gets the values after; may be theta */
	float *update;	    /* gets what was merged, unless NULL */
	/* Gets how alike the deltas were, of which that is known of up to
	 * DL_GRAM_MOST; unless NULL. */
	struct dl_alike *alike;
	/*
	 * Unless NULL it gets the values after, [offset, offset + n) of them,
	 * instead of `next`: a block, DL_MERGE_BLOCK of a segment from its
	 * start or what is left of it, from any thread.
	 */
	void (*made)(void *ctx, size_t offset, size_t n, const float *next);
	void *ctx;
};

/*
 * What dl_merge_fragment and dl_outer_step make of the same deltas, with the
 * same bits. products, unless NULL, are the inner products of the contributions
 * in the caller's order (merge/gram.h), product[(s * n + i) * n + j]; without
 * them, and where directions cancel, the deltas are read a second time.
 * Returns as dl_merge_fragment does; after a failure nothing has changed.
 */
int dl_merge_step(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *contributions,
	size_t ncontributions, const double *products,
	const struct dl_step *step, struct dl_err *e);

#endif
