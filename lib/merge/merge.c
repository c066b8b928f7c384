#include "merge/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/kernels.h"
#include "merge/strip.h"
#include "merge/weigh.h"

struct merge {
	const struct dl_kernels *k;
	const struct dl_weighed *w;
	struct dl_block *blocks;
	size_t nblocks;
	float *update;
	double *changed; /* [block] square of the update */
	double *square;	 /* [j][block] of delta j */
	double *dot;	 /* [j][block] of delta j and the update */
};

double dl_merge_weight(uint64_t tokens, uint64_t steps)
{
	return steps ? (double)tokens * ((double)tokens / (double)steps) : 0;
}

static void update_block(void *ctx, size_t i)
{
	const struct merge *g = ctx;
	const struct dl_party *p = &g->w->party;
	const struct dl_block *b = &g->blocks[i];
	double sum[DL_STRIP] __attribute__((aligned(64)));

	for (size_t done = 0; done < b->n; done += DL_STRIP) {
		size_t n = b->n - done < DL_STRIP ? b->n - done : DL_STRIP;
		size_t at = b->offset + done;

		dl_weighed_sum(
			p, g->w->coef + b->segment * p->m, at, n, sum, NULL);
		g->k->narrow(g->update + at, sum, n);
	}
	g->changed[i] = g->k->square(g->update + b->offset, b->n);
}

/* Learner by learner, since memory likes long reads. */
static void compare_block(void *ctx, size_t i)
{
	const struct merge *g = ctx;
	const struct dl_block *b = &g->blocks[i % g->nblocks];
	float scratch[DL_MERGE_BLOCK];
	const float *x = dl_strip(
		g->w->party.who[i / g->nblocks], b->offset, b->n, scratch);

	g->square[i] = g->k->square(x, b->n);
	g->dot[i] = g->k->dot(x, g->update + b->offset, b->n);
}

static double add_up(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

/* The shares of those who weigh something, from one more reading. */
static void compare(struct merge *g, struct dl_pool *pool,
	const struct dl_contribution *from, double changed,
	struct dl_share *shares)
{
	const struct dl_party *p = &g->w->party;
	size_t n = p->m * g->nblocks;

	g->square = dl_alloc_array(n, sizeof *g->square);
	g->dot = dl_alloc_array(n, sizeof *g->dot);
	dl_pool_run(pool, n, compare_block, g);
	for (size_t j = 0; j < p->m; j++) {
		double square = add_up(g->square + j * g->nblocks, g->nblocks),
		       dot = add_up(g->dot + j * g->nblocks, g->nblocks),
		       size = sqrt(square) * sqrt(changed);

		shares[p->who[j] - from] = (struct dl_share){p->part[j],
			p->who[j]->scale * sqrt(square),
			size > 0 ? dot / size : 0};
	}
	free(g->square);
	free(g->dot);
}

int dl_merge_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *contributions,
	size_t ncontributions, float *update, struct dl_share *shares,
	struct dl_err *e)
{
	const struct dl_merging what = {pool, segments, nsegments,
		contributions, ncontributions, NULL, 0, NULL};
	struct dl_weighed w;
	struct merge g = {.k = dl_kernels(), .w = &w, .update = update};
	double changed;
	int code = dl_weigh(&w, &what, e);

	if (code)
		return code;
	g.nblocks = dl_blocks_cut(segments, nsegments, &g.blocks);
	g.changed = dl_alloc_array(g.nblocks, sizeof *g.changed);
	dl_pool_run(pool, g.nblocks, update_block, &g);
	changed = add_up(g.changed, g.nblocks);
	if (shares) {
		memset(shares, 0, ncontributions * sizeof *shares);
		compare(&g, pool, contributions, changed, shares);
	}
	free(g.changed);
	free(g.blocks);
	dl_weighed_release(&w);
	return isfinite(changed)
		       ? 0
		       : dl_fail(e, DL_DATA, "the merged update is not finite");
}
