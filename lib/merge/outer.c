#include "merge/outer.h"

#include <stdlib.h>

#include "merge/blocks.h"
#include "merge/kernels.h"

struct step {
	const struct dl_kernels *k;
	const struct dl_outer *outer;
	const struct dl_segment *segments;
	const struct dl_block *blocks;
	const float *update;
	float *theta, *momentum;
};

static void step_block(void *ctx, size_t i)
{
	const struct step *s = ctx;
	const struct dl_block *b = &s->blocks[i];
	enum dl_rule rule = s->segments[b->segment].rule;
	const float *update = s->update + b->offset;
	float *theta = s->theta + b->offset;
	float lr = s->outer->lr, mu = s->outer->mu;

	if (rule == DL_STAT || rule == DL_LAST)
		s->k->add(theta, 1, update, b->n);
	else if (mu == 0)
		s->k->descend(theta, update, lr, b->n);
	else
		(s->outer->nesterov ? s->k->nesterov : s->k->momentum)(
			theta, s->momentum + b->offset, update, lr, mu, b->n);
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
