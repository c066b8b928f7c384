#include "merge/weigh.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/gram.h"
#include "merge/kernels.h"
#include "merge/strip.h"

/* The square of |u| that products are not trusted below. */
#define LEAST_SQUARE 0x1p-8

enum { GROUP = 16 }; /* deltas that are added at once */

struct weigh {
	const struct dl_kernels *k;
	const struct dl_merging *g;
	const struct dl_party *party;
	double *coef;
	double *norm;	/* [s * m + j] of the deltas before scaling */
	double *length; /* [s] the square of |u|; 0 is to be summed */
	struct dl_block *blocks;
	size_t nblocks;
	double *sum; /* [j][block], or [block] */
};

static int is_radial(const struct weigh *w, size_t s)
{
	return w->g->segments[s].rule == DL_RDA && w->party->m > 1;
}

static int needs_norms(const struct weigh *w, size_t s)
{
	return w->g->bound || is_radial(w, s);
}

void dl_weighed_sum(const struct dl_party *p, const double *coef, size_t at,
	size_t n, double *sum, const struct dl_beside *beside)
{
	float scratch[GROUP][DL_STRIP];
	struct dl_codes from[GROUP], next;
	double c[GROUP];
	size_t count = 0;
	int first = 1;

	for (size_t j = 0; j < p->m; j++) {
		if (coef[j] == 0) /* 0 times a delta might be -0 */
			continue;
		next = dl_strip_codes(p->who[j], at, n, scratch[j % GROUP]);
		if (count == GROUP || (count && !dl_codes_alike(&next, from))) {
			dl_quant_add(from, c, count, n, first, sum, beside);
			count = first = 0;
		}
		from[count] = next;
		c[count++] = coef[j];
	}
	dl_quant_add(from, c, count, n, first, sum, beside);
}

/* Learner by learner, since memory likes long reads. */
static void square_block(void *ctx, size_t i)
{
	const struct weigh *w = ctx;
	const struct dl_block *b = &w->blocks[i % w->nblocks];
	float scratch[DL_MERGE_BLOCK];
	struct dl_codes x;

	if (!needs_norms(w, b->segment))
		return;
	x = dl_strip_codes(
		w->party->who[i / w->nblocks], b->offset, b->n, scratch);
	w->sum[i] = dl_gram_block(&x, &x, b->n);
}

static void read_norms(struct weigh *w)
{
	size_t m = w->party->m;

	w->sum = dl_alloc_array(m * w->nblocks, sizeof *w->sum);
	dl_pool_run(w->g->pool, m * w->nblocks, square_block, w);
	for (size_t i = 0; i < m * w->nblocks; i++)
		w->norm[w->blocks[i % w->nblocks].segment * m +
			i / w->nblocks] += w->sum[i];
	for (size_t i = 0; i < w->g->nsegments * m; i++)
		w->norm[i] = sqrt(w->norm[i]);
	free(w->sum);
}

/* The norms and the square of |u|, from products of which that of members i
 * and j is product[index[i] * stride + index[j]] of each segment. */
static void take_products(struct weigh *w, const double *product,
	const size_t *index, size_t stride)
{
	size_t m = w->party->m;

	for (size_t s = 0; s < w->g->nsegments; s++) {
		double *norm = w->norm + s * m, *coef = w->coef + s * m;

		for (size_t j = 0; j < m; j++)
			norm[j] = sqrt(product[index[j] * stride + index[j]]);
		dl_party_direct(w->party, norm, coef);
		for (size_t i = 0; i < m && m <= DL_GRAM_MOST; i++)
			for (size_t j = 0; j < m; j++)
				w->length[s] +=
					coef[i] * coef[j] *
					product[index[i] * stride + index[j]];
		product += stride * stride;
	}
}

static void compare(const struct weigh *w, const double *product,
	const size_t *index, size_t stride)
{
	const struct dl_merging *g = w->g;

	if (g->alike)
		dl_alike(g->alike, g->segments, g->nsegments, product, stride,
			index, w->party->m);
}

static void read_products(struct weigh *w, size_t *index)
{
	const struct dl_merging *g = w->g;
	size_t m = w->party->m;
	double *product = dl_alloc_array(g->nsegments * m * m, sizeof *product);

	for (size_t j = 0; j < m; j++)
		index[j] = j;
	dl_gram(g->pool, g->segments, g->nsegments, w->party->who, m, g->bound,
		product);
	take_products(w, product, index, m);
	compare(w, product, index, m);
	free(product);
}

static void find_norms(struct weigh *w)
{
	const struct dl_merging *g = w->g;
	size_t m = w->party->m, *index = dl_alloc_array(m, sizeof *index);

	for (size_t j = 0; j < m; j++)
		index[j] = (size_t)(w->party->who[j] - g->from);
	if (g->alike)
		*g->alike = (struct dl_alike)DL_ALIKE_UNKNOWN;
	if (g->products) {
		take_products(w, g->products, index, g->n);
		compare(w, g->products, index, g->n);
	} else if (m > DL_GRAM_MOST) {
		read_norms(w);
	} else if (m > 1 || g->bound) {
		read_products(w, index);
	}
	free(index);
}

static int is_summed(const struct weigh *w, size_t s)
{
	return is_radial(w, s) && !(w->length[s] >= LEAST_SQUARE);
}

static void direct_block(void *ctx, size_t i)
{
	const struct weigh *w = ctx;
	const struct dl_block *b = &w->blocks[i];
	double sum[DL_STRIP] __attribute__((aligned(64))), square = 0;

	for (size_t at = 0; at < b->n; at += DL_STRIP) {
		size_t n = b->n - at < DL_STRIP ? b->n - at : DL_STRIP;

		dl_weighed_sum(w->party, w->coef + b->segment * w->party->m,
			b->offset + at, n, sum, NULL);
		square += w->k->square_wide(sum, n);
	}
	w->sum[i] = square;
}

/* The length of u where products do not give it. */
static void sum_directly(struct weigh *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->nblocks; i++)
		if (is_summed(w, w->blocks[i].segment))
			w->blocks[kept++] = w->blocks[i];
	for (size_t s = 0; s < w->g->nsegments; s++)
		if (is_summed(w, s)) {
			dl_party_direct(w->party, w->norm + s * w->party->m,
				w->coef + s * w->party->m);
			w->length[s] = 0;
		}
	w->sum = dl_alloc_array(kept, sizeof *w->sum);
	dl_pool_run(w->g->pool, kept, direct_block, w);
	for (size_t i = 0; i < kept; i++)
		w->length[w->blocks[i].segment] += w->sum[i];
	free(w->sum);
}

/* An element of the update is no larger than the norms allow. */
static int is_bounded(const struct weigh *w)
{
	size_t m = w->party->m;

	for (size_t s = 0; s < w->g->nsegments; s++) {
		double most = 0;

		for (size_t j = 0; j < m; j++)
			most += fabs(w->coef[s * m + j]) * w->norm[s * m + j];
		if (!(most < FLT_MAX / 2))
			return 0;
	}
	return 1;
}

int dl_weigh(
	struct dl_weighed *out, const struct dl_merging *g, struct dl_err *e)
{
	struct weigh w = {.k = dl_kernels(), .g = g, .party = &out->party};
	int code = dl_party_init(&out->party, g->from, g->n, e);
	size_t m = out->party.m;

	if (code)
		return code;
	w.coef = out->coef = dl_alloc_array(g->nsegments * m, sizeof *w.coef);
	w.norm = dl_alloc_array(g->nsegments * m, sizeof *w.norm);
	w.length = dl_alloc_array(g->nsegments, sizeof *w.length);
	w.nblocks = dl_blocks_cut(g->segments, g->nsegments, &w.blocks);
	find_norms(&w);
	sum_directly(&w);
	for (size_t s = 0; s < g->nsegments; s++)
		dl_party_weigh(&out->party, g->segments[s].rule, w.norm + s * m,
			sqrt(w.length[s]), w.coef + s * m);
	out->bounded = g->bound && is_bounded(&w);
	free(w.blocks);
	free(w.norm);
	free(w.length);
	return 0;
}

void dl_weighed_release(struct dl_weighed *w)
{
	dl_party_release(&w->party);
	free(w->coef);
}
