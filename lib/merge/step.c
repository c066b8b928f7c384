#include "merge/step.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/kernels.h"
#include "merge/strip.h"
#include "merge/weigh.h"

struct work {
	const struct dl_kernels *k;
	const struct dl_merging *g;
	const struct dl_weighed *w;
	const struct dl_step *step;
	struct dl_block *blocks;
};

/* The update of n elements from at on: merged, unless that was done before. */
static const float *update_of(const struct work *k, size_t segment, size_t at,
	size_t n, float *scratch)
{
	const struct dl_party *p = &k->w->party;
	const struct dl_step *s = k->step;
	const struct dl_beside beside = {
		s->theta + at, (s->momentum ? s->momentum : s->theta) + at};
	float *update = s->update ? s->update + at : scratch;
	double sum[DL_STRIP] __attribute__((aligned(64)));

	if (!k->w->bounded)
		return update;
	dl_weighed_sum(p, k->w->coef + segment * p->m, at, n, sum, &beside);
	k->k->narrow(update, sum, n);
	return update;
}

static void step_block(void *ctx, size_t i)
{
	const struct work *k = ctx;
	const struct dl_step *s = k->step;
	const struct dl_block *b = &k->blocks[i];
	enum dl_rule rule = k->g->segments[b->segment].rule;
	float next[DL_MERGE_BLOCK], scratch[DL_STRIP];

	for (size_t done = 0; done < b->n; done += DL_STRIP) {
		size_t n = b->n - done < DL_STRIP ? b->n - done : DL_STRIP;
		size_t at = b->offset + done;
		const float *update = update_of(k, b->segment, at, n, scratch);

		dl_outer_strip(k->k, &s->outer, rule,
			s->made ? next + done : s->next + at, s->theta + at,
			s->momentum ? s->momentum + at : NULL, update, n);
	}
	if (s->made)
		s->made(s->ctx, b->offset, b->n, next);
}

static void step_all(const struct dl_merging *g, const struct dl_weighed *w,
	const struct dl_step *step)
{
	struct work k = {dl_kernels(), g, w, step, NULL};
	size_t n = dl_blocks_cut(g->segments, g->nsegments, &k.blocks);

	dl_pool_run(g->pool, n, step_block, &k);
	free(k.blocks);
}

/* An update that may be infinite is made and looked at before the step. */
static int step_apart(const struct dl_merging *g, const struct dl_weighed *w,
	const struct dl_step *step, struct dl_err *e)
{
	struct dl_step after = *step;
	size_t bytes = 0;
	int code;

	for (size_t s = 0; s < g->nsegments; s++)
		if (g->segments[s].offset + g->segments[s].n > bytes)
			bytes = g->segments[s].offset + g->segments[s].n;
	bytes *= sizeof(float);
	if (!after.update)
		after.update = dl_big_alloc(bytes);
	code = dl_merge_fragment(g->pool, g->segments, g->nsegments, g->from,
		g->n, after.update, NULL, e);
	if (!code)
		step_all(g, w, &after);
	if (!step->update)
		dl_big_free(after.update, bytes);
	return code;
}

int dl_merge_step(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *contributions,
	size_t ncontributions, const double *products,
	const struct dl_step *step, struct dl_err *e)
{
	const struct dl_merging g = {pool, segments, nsegments, contributions,
		ncontributions, products, 1, step->alike};
	struct dl_weighed w;
	int code = dl_weigh(&w, &g, e);

	if (code)
		return code;
	if (w.bounded)
		step_all(&g, &w, step);
	else
		code = step_apart(&g, &w, step, e);
	dl_weighed_release(&w);
	return code;
}
