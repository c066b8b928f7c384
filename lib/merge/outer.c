#include "merge/outer.h"

#include <stdlib.h>

#include "merge/blocks.h"
#include "merge/kernels.h"
#include "merge/strip.h"

struct step {
	const struct dl_kernels *k;
	const struct dl_outer *outer;
	const struct dl_segment *segments;
	const struct dl_block *blocks;
	const float *update;
	float *theta, *momentum;
};

void dl_outer_strip(const struct dl_kernels *k, const struct dl_outer *outer,
	enum dl_rule rule, float *next, const float *theta, float *momentum,
	const float *update, size_t n)
{
	float lr = outer->lr, mu = outer->mu;

	/* theta + update is theta - 1 * -update, to the bit. */
	if (rule == DL_STAT || rule == DL_LAST)
		k->descend(next, theta, update, 1, n);
	else if (mu == 0)
		k->descend(next, theta, update, lr, n);
	else
		(outer->nesterov ? k->nesterov : k->momentum)(
			next, theta, momentum, update, lr, mu, n);
}

static void step_block(void *ctx, size_t i)
{
	const struct step *s = ctx;
	const struct dl_block *b = &s->blocks[i];
	float *theta = s->theta + b->offset;

	dl_outer_strip(s->k, s->outer, s->segments[b->segment].rule, theta,
		theta, s->momentum ? s->momentum + b->offset : NULL,
		s->update + b->offset, b->n);
}

void dl_outer_step(struct dl_pool *pool, const struct dl_outer *outer,
	const struct dl_segment *segments, size_t nsegments,
	const float *update, float *theta, float *momentum)
{
	struct dl_block *blocks;
	size_t n = dl_blocks_cut(segments, nsegments, &blocks);
	struct step s = {
		dl_kernels(), outer, segments, blocks, update, theta, momentum};

	dl_pool_run(pool, n, step_block, &s);
	free(blocks);
}
