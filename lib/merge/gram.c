#include "merge/gram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/kernels.h"
#include "merge/strip.h"

/* All deltas' strips stay in the nearest cache: each is wanted as often as
 * there are others. */
enum { STRIP = 512 };

struct gram {
	const struct dl_segment *segments;
	struct dl_block *blocks;
	const struct dl_contribution *const *who;
	size_t m, pairs;
	int all;
	double *sum; /* [block][pair], the pairs (i, j >= i) in order */
};

double dl_gram_block(
	const struct dl_codes *x, const struct dl_codes *y, size_t n)
{
	float a[DL_MERGE_BLOCK], b[DL_MERGE_BLOCK];
	double product;

	if (!dl_quant_dot(x, y, n, &product))
		return product;
	return dl_kernels()->dot(
		dl_codes_values(x, n, a), dl_codes_values(y, n, b), n);
}

/* Up to a whole tile. */
static size_t tiles_of(size_t m)
{
	return (m + DL_GRAM_TILE - 1) / DL_GRAM_TILE * DL_GRAM_TILE;
}

/* What is beyond the m deltas repeats the last. */
static void add_strip(const struct dl_contribution *const *who, size_t m,
	size_t at, size_t n, double (*lane)[DL_GRAM_MOST][DL_LANES])
{
	size_t tiles = tiles_of(m);
	float scratch[DL_GRAM_MOST][STRIP];
	const float *x[DL_GRAM_MOST];

	for (size_t j = 0; j < tiles; j++)
		x[j] = j < m ? dl_strip(who[j], at, n, scratch[j]) : x[j - 1];
	dl_kernels()->gram(lane, x, tiles, n);
}

static void sum_values(const struct dl_contribution *const *who, size_t m,
	size_t offset, size_t n, double *sum)
{
	double lane[DL_GRAM_MOST][DL_GRAM_MOST][DL_LANES];
	size_t tiles = tiles_of(m);

	for (size_t x = 0; x < tiles; x++)
		memset(lane[x], 0, tiles * sizeof lane[x][0]);
	for (size_t at = 0; at < n; at += STRIP)
		add_strip(who, m, offset + at, n - at < STRIP ? n - at : STRIP,
			lane);
	for (size_t x = 0; x < m; x++)
		for (size_t y = x; y < m; y++, sum++)
			if (isnan(*sum))
				*sum = dl_lanes_total(lane[x][y]);
}

/* The products that codes give, and NAN for others, of which it returns how
 * many there are. */
static size_t sum_codes(const struct dl_contribution *const *who, size_t m,
	size_t offset, size_t n, double *sum)
{
	struct dl_codes from[DL_GRAM_MOST] = {{.codes = NULL}};
	int coded[DL_GRAM_MOST], all = 1;
	size_t others = 0;

	for (size_t j = 0; j < m; j++) {
		coded[j] = !who[j]->delta && who[j]->codes &&
			   !who[j]->codes(who[j]->ctx, offset, n, &from[j]);
		all &= coded[j];
	}
	if (all && !dl_quant_gram(from, m, n, sum))
		return 0;
	for (size_t x = 0; x < m; x++)
		for (size_t y = x; y < m; y++, sum++)
			if (!coded[x] || !coded[y] ||
				dl_quant_dot(&from[x], &from[y], n, sum)) {
				*sum = NAN;
				others++;
			}
	return others;
}

void dl_gram_pairs(const struct dl_contribution *const *who, size_t m,
	size_t offset, size_t n, double *sum)
{
	if (sum_codes(who, m, offset, n, sum))
		sum_values(who, m, offset, n, sum);
}

/* Those that are not rda need the squares only. */
static void square_block(void *ctx, size_t i)
{
	const struct gram *g = ctx;
	const struct dl_block *b = &g->blocks[i];
	double *sum = g->sum + i * g->pairs;
	float scratch[DL_MERGE_BLOCK];

	for (size_t j = 0; j < g->m; sum += g->m - j, j++) {
		struct dl_codes x =
			dl_strip_codes(g->who[j], b->offset, b->n, scratch);

		*sum = dl_gram_block(&x, &x, b->n);
	}
}

static void take_block(void *ctx, size_t i)
{
	const struct gram *g = ctx;
	const struct dl_block *b = &g->blocks[i];

	if (g->segments[b->segment].rule == DL_RDA)
		dl_gram_pairs(
			g->who, g->m, b->offset, b->n, g->sum + i * g->pairs);
	else if (g->all)
		square_block(ctx, i);
}

/* Adds a block's products to its segment's. */
static void add_block(const struct gram *g, size_t block, double *product)
{
	const double *sum = g->sum + block * g->pairs;

	product += g->blocks[block].segment * g->m * g->m;
	for (size_t i = 0; i < g->m; i++)
		for (size_t j = i; j < g->m; j++)
			product[i * g->m + j] += *sum++;
}

void dl_gram(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *const *who, size_t m,
	int all, double *product)
{
	struct gram g = {.segments = segments,
		.who = who,
		.m = m,
		.all = all,
		.pairs = m * (m + 1) / 2};
	size_t n = dl_blocks_cut(segments, nsegments, &g.blocks);

	g.sum = dl_alloc_array(n * g.pairs, sizeof *g.sum);
	dl_pool_run(pool, n, take_block, &g);
	memset(product, 0, nsegments * m * m * sizeof *product);
	for (size_t i = 0; i < n; i++)
		add_block(&g, i, product);
	for (size_t s = 0; s < nsegments; s++, product += m * m)
		for (size_t i = 0; i < m; i++)
			for (size_t j = 0; j < i; j++)
				product[i * m + j] = product[j * m + i];
	free(g.sum);
	free(g.blocks);
}
