#include "merge/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/kernels.h"
#include "merge/party.h"

/*
 * A merge is three passes over blocks: the norm of each delta; the length of
 * the mean direction; the merged delta. Each leaves its sums a block, which
 * are added a segment in block order in between. [b][j] is block b and member
 * j of the party, [s][j] segment s.
 */
struct merge {
	const struct dl_kernels *k;
	const struct dl_segment *segments;
	size_t nsegments, nblocks;
	struct dl_block *blocks;
	struct dl_party party;
	double *square; /* [b][j] of the delta, unscaled */
	double *norm;	/* [s][j] of the delta, unscaled */
	double *coef;	/* [s][j] what the deltas are multiplied by */
	double *wide;	/* [b] sum of squares of u, then of the update */
	double *dot;	/* [b][j] of delta and update; NULL: not wanted */
	double *length; /* [s] |u| */
	float *update;
};

double dl_merge_weight(uint64_t tokens, uint64_t steps)
{
	return steps ? (double)tokens * ((double)tokens / (double)steps) : 0;
}

/* The values of one block, decoded into scratch unless they lie there. */
static const float *values(const struct dl_contribution *c,
	const struct dl_block *b, float scratch[DL_MERGE_BLOCK])
{
	if (c->delta)
		return c->delta + b->offset;
	c->read(c->ctx, b->offset, b->n, scratch);
	return scratch;
}

static int is_radial(const struct merge *g, size_t segment)
{
	return g->segments[segment].rule == DL_RDA && g->party.m > 1;
}

static void square_block(void *ctx, size_t i)
{
	struct merge *g = ctx;
	const struct dl_block *b = &g->blocks[i];
	float scratch[DL_MERGE_BLOCK];
	size_t m = g->party.m;

	if (!g->dot && !is_radial(g, b->segment))
		return;
	for (size_t j = 0; j < m; j++)
		g->square[i * m + j] =
			g->k->square(values(g->party.who[j], b, scratch), b->n);
}

/* The sum of the deltas times the segment's coefficients. Nothing is made of
 * nothing: 0 times a delta is skipped, so that last keeps the sign of zero. */
static void combine(const struct merge *g, const struct dl_block *b,
	double sum[DL_MERGE_BLOCK])
{
	const double *coef = g->coef + b->segment * g->party.m;
	float scratch[DL_MERGE_BLOCK];
	int begun = 0;

	for (size_t j = 0; j < g->party.m; j++) {
		if (coef[j] == 0)
			continue;
		(begun ? g->k->accumulate : g->k->weigh)(sum, coef[j],
			values(g->party.who[j], b, scratch), b->n);
		begun = 1;
	}
	if (!begun)
		memset(sum, 0, b->n * sizeof *sum);
}

static void direct_block(void *ctx, size_t i)
{
	struct merge *g = ctx;
	const struct dl_block *b = &g->blocks[i];
	double sum[DL_MERGE_BLOCK];

	if (!is_radial(g, b->segment))
		return;
	combine(g, b, sum);
	g->wide[i] = g->k->square_wide(sum, b->n);
}

static void update_block(void *ctx, size_t i)
{
	struct merge *g = ctx;
	const struct dl_block *b = &g->blocks[i];
	float *update = g->update + b->offset, scratch[DL_MERGE_BLOCK];
	double sum[DL_MERGE_BLOCK];
	size_t m = g->party.m;

	combine(g, b, sum);
	g->k->narrow(update, sum, b->n);
	g->wide[i] = g->k->square(update, b->n);
	for (size_t j = 0; g->dot && j < m; j++)
		g->dot[i * m + j] = g->k->dot(
			values(g->party.who[j], b, scratch), update, b->n);
}

/* Pass one, and the coefficients of u. */
static void find_norms(struct merge *g, struct dl_pool *pool)
{
	size_t m = g->party.m;

	dl_pool_run(pool, g->nblocks, square_block, g);
	for (size_t i = 0; i < g->nblocks; i++)
		for (size_t j = 0; j < m; j++)
			g->norm[g->blocks[i].segment * m + j] +=
				g->square[i * m + j];
	for (size_t i = 0; i < g->nsegments * m; i++)
		g->norm[i] = sqrt(g->norm[i]);
	for (size_t s = 0; s < g->nsegments; s++)
		dl_party_direct(&g->party, g->norm + s * m, g->coef + s * m);
}

/* Pass two, and the coefficients of the update. */
static void find_lengths(struct merge *g, struct dl_pool *pool)
{
	size_t m = g->party.m;

	dl_pool_run(pool, g->nblocks, direct_block, g);
	for (size_t i = 0; i < g->nblocks; i++)
		g->length[g->blocks[i].segment] += g->wide[i];
	for (size_t s = 0; s < g->nsegments; s++)
		dl_party_weigh(&g->party, g->segments[s].rule, g->norm + s * m,
			sqrt(g->length[s]), g->coef + s * m);
}

static void report(const struct merge *g,
	const struct dl_contribution *contributions, double changed,
	struct dl_share *shares)
{
	size_t m = g->party.m;

	for (size_t j = 0; j < m; j++) {
		const struct dl_contribution *c = g->party.who[j];
		double square = 0, dot = 0, size;

		for (size_t i = 0; i < g->nblocks; i++) {
			square += g->square[i * m + j];
			dot += g->dot[i * m + j];
		}
		size = sqrt(square) * sqrt(changed);
		shares[c - contributions] = (struct dl_share){g->party.part[j],
			c->scale * sqrt(square), size > 0 ? dot / size : 0};
	}
}

static void prepare(struct merge *g, const struct dl_segment *segments,
	size_t nsegments, float *update, int shares)
{
	size_t m = g->party.m;

	g->k = dl_kernels();
	g->segments = segments;
	g->nsegments = nsegments;
	g->update = update;
	g->nblocks = dl_blocks_cut(segments, nsegments, &g->blocks);
	g->square = dl_alloc_array(g->nblocks * m, sizeof *g->square);
	g->norm = dl_alloc_array(nsegments * m, sizeof *g->norm);
	g->coef = dl_alloc_array(nsegments * m, sizeof *g->coef);
	g->wide = dl_alloc_array(g->nblocks, sizeof *g->wide);
	g->length = dl_alloc_array(nsegments, sizeof *g->length);
	if (shares)
		g->dot = dl_alloc_array(g->nblocks * m, sizeof *g->dot);
}

static void release(struct merge *g)
{
	dl_party_release(&g->party);
	free(g->blocks);
	free(g->square);
	free(g->norm);
	free(g->coef);
	free(g->wide);
	free(g->length);
	free(g->dot);
}

int dl_merge_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *contributions,
	size_t ncontributions, float *update, struct dl_share *shares,
	struct dl_err *e)
{
	struct merge g = {0};
	double changed = 0;
	int code;

	code = dl_party_init(&g.party, contributions, ncontributions, e);
	if (code)
		return code;
	prepare(&g, segments, nsegments, update, shares != NULL);
	find_norms(&g, pool);
	find_lengths(&g, pool);
	dl_pool_run(pool, g.nblocks, update_block, &g);
	for (size_t i = 0; i < g.nblocks; i++)
		changed += g.wide[i];
	if (shares) {
		memset(shares, 0, ncontributions * sizeof *shares);
		report(&g, contributions, changed, shares);
	}
	release(&g);
	return isfinite(changed)
		       ? 0
		       : dl_fail(e, DL_DATA, "the merged update is not finite");
}
