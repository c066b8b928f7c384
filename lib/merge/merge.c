#include "merge/merge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "merge/kernels.h"
#include "merge/party.h"

/* Deltas are combined this many elements at a time, so that the sums stay in
 * the nearest cache; a segment with this many bytes of deltas is merged by one
 * thread, so that its later passes find it in the next. SMALL does not change
 * the bits. */
enum { STRIP = DL_MERGE_BLOCK / 4, SMALL = 1 << 20 };

struct merge {
	const struct dl_kernels *k;
	struct dl_party party;
	const struct dl_segment *segments;
	float *update;
	int compare;	 /* shares are wanted */
	double *square;	 /* [s][j] of delta j in segment s, unscaled */
	double *dot;	 /* [s][j] of delta and update */
	double *changed; /* [s] sum of squares of the update */
};

/*
 * A segment's merge is three passes over its blocks: the norm of each delta;
 * the length of the mean direction; the merged delta. Each leaves its sums a
 * block, which are added in block order in between.
 */
struct work {
	const struct merge *g;
	const struct dl_segment *s;
	size_t blocks;
	double *coef; /* [j] what the deltas are multiplied by */
	double *sum;  /* [j][block], or [block] */
	double *dot;  /* [j][block] */
};

double dl_merge_weight(uint64_t tokens, uint64_t steps)
{
	return steps ? (double)tokens * ((double)tokens / (double)steps) : 0;
}

/* n values from offset on, decoded into scratch unless they lie there. */
static const float *values(const struct dl_contribution *c, size_t offset,
	size_t n, float *scratch)
{
	if (c->delta)
		return c->delta + offset;
	c->read(c->ctx, offset, n, scratch);
	return scratch;
}

/* Where a block starts in the fragment, and how long it is. */
static size_t block_at(const struct work *w, size_t block, size_t *n)
{
	size_t done = block * DL_MERGE_BLOCK, left = w->s->n - done;

	*n = left < DL_MERGE_BLOCK ? left : DL_MERGE_BLOCK;
	return w->s->offset + done;
}

/* Learner by learner, since memory likes long reads. */
static void square_block(void *ctx, size_t i)
{
	const struct work *w = ctx;
	float scratch[DL_MERGE_BLOCK];
	size_t n, at = block_at(w, i % w->blocks, &n);

	w->sum[i] = w->g->k->square(
		values(w->g->party.who[i / w->blocks], at, n, scratch), n);
}

/*
 * The values that combine reads after those of member j, so that memory is
 * busy meanwhile: deltas are many, and read too little at a time for the CPU
 * to see them coming. NULL when they are not there or fewer.
 */
static const float *next_values(
	const struct work *w, size_t j, size_t at, size_t n)
{
	do {
		if (++j == w->g->party.m) {
			j = 0;
			at += n;
		}
	} while (w->coef[j] == 0);
	if (!w->g->party.who[j]->delta || at + n > w->s->offset + w->s->n)
		return NULL;
	return w->g->party.who[j]->delta + at;
}

/* The sum of the deltas times their coefficients. It starts at -0, which leaves
 * even -0 as it is when added to; so does skipping 0 times a delta. */
static void combine(
	const struct work *w, size_t at, size_t n, double sum[STRIP])
{
	float scratch[STRIP];

	for (size_t i = 0; i < STRIP; i++)
		sum[i] = -0.0;
	for (size_t j = 0; j < w->g->party.m; j++)
		if (w->coef[j] != 0)
			w->g->k->accumulate(sum, w->coef[j],
				values(w->g->party.who[j], at, n, scratch),
				next_values(w, j, at, n), n);
}

static void direct_block(void *ctx, size_t block)
{
	const struct work *w = ctx;
	double sum[STRIP], square = 0;
	size_t n, at = block_at(w, block, &n);

	for (size_t i = 0; i < n; i += STRIP) {
		size_t strip = n - i < STRIP ? n - i : STRIP;

		combine(w, at + i, strip, sum);
		square += w->g->k->square_wide(sum, strip);
	}
	w->sum[block] = square;
}

static void update_block(void *ctx, size_t block)
{
	const struct work *w = ctx;
	const struct dl_kernels *k = w->g->k;
	double sum[STRIP];
	float scratch[DL_MERGE_BLOCK];
	size_t n, at = block_at(w, block, &n);
	float *update = w->g->update + at;

	for (size_t i = 0; i < n; i += STRIP) {
		size_t strip = n - i < STRIP ? n - i : STRIP;

		combine(w, at + i, strip, sum);
		k->narrow(update + i, sum, strip);
	}
	w->sum[block] = k->square(update, n);
	for (size_t j = 0; w->g->compare && j < w->g->party.m; j++)
		w->dot[j * w->blocks + block] = k->dot(
			values(w->g->party.who[j], at, n, scratch), update, n);
}

static double add_up(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

/* The length of the mean direction, from the norms. */
static double find_length(
	struct work *w, struct dl_pool *pool, const double *norm)
{
	dl_party_direct(&w->g->party, norm, w->coef);
	dl_pool_run(pool, w->blocks, direct_block, w);
	return sqrt(add_up(w->sum, w->blocks));
}

static void run_passes(struct work *w, struct dl_pool *pool, double *norm)
{
	const struct merge *g = w->g;
	size_t s = (size_t)(w->s - g->segments), m = g->party.m;
	int radial = w->s->rule == DL_RDA && m > 1;
	double length = 0;

	if (radial || g->compare) {
		dl_pool_run(pool, m * w->blocks, square_block, w);
		for (size_t j = 0; j < m; j++) {
			g->square[s * m + j] =
				add_up(w->sum + j * w->blocks, w->blocks);
			norm[j] = sqrt(g->square[s * m + j]);
		}
	}
	if (radial)
		length = find_length(w, pool, norm);
	dl_party_weigh(&g->party, w->s->rule, norm, length, w->coef);
	dl_pool_run(pool, w->blocks, update_block, w);
	g->changed[s] = add_up(w->sum, w->blocks);
	for (size_t j = 0; g->compare && j < m; j++)
		g->dot[s * m + j] = add_up(w->dot + j * w->blocks, w->blocks);
}

static void merge_segment(const struct merge *g, struct dl_pool *pool, size_t s)
{
	size_t m = g->party.m;
	struct work w = {.g = g, .s = &g->segments[s]};
	double *norm = dl_alloc_array(m, sizeof *norm);

	w.blocks = w.s->n / DL_MERGE_BLOCK + (w.s->n % DL_MERGE_BLOCK != 0);
	w.coef = dl_alloc_array(m, sizeof *w.coef);
	w.sum = dl_alloc_array(m * w.blocks, sizeof *w.sum);
	w.dot = dl_alloc_array(g->compare ? m * w.blocks : 0, sizeof *w.dot);
	run_passes(&w, pool, norm);
	free(norm);
	free(w.coef);
	free(w.sum);
	free(w.dot);
}

static int is_small(const struct merge *g, size_t s)
{
	return g->segments[s].n <= SMALL / sizeof(float) / g->party.m;
}

static void merge_if_small(void *ctx, size_t s)
{
	const struct merge *g = ctx;

	if (g->segments[s].rule != DL_ALIAS && is_small(g, s))
		merge_segment(g, NULL, s);
}

static void merge_segments(struct merge *g, struct dl_pool *pool, size_t n)
{
	dl_pool_run(pool, n, merge_if_small, g);
	for (size_t s = 0; s < n; s++)
		if (g->segments[s].rule != DL_ALIAS && !is_small(g, s))
			merge_segment(g, pool, s);
}

static void report(const struct merge *g, size_t nsegments,
	const struct dl_contribution *contributions, double changed,
	struct dl_share *shares)
{
	size_t m = g->party.m;

	for (size_t j = 0; j < m; j++) {
		const struct dl_contribution *c = g->party.who[j];
		double square = 0, dot = 0, size;

		for (size_t s = 0; s < nsegments; s++) {
			square += g->square[s * m + j];
			dot += g->dot[s * m + j];
		}
		size = sqrt(square) * sqrt(changed);
		shares[c - contributions] = (struct dl_share){g->party.part[j],
			c->scale * sqrt(square), size > 0 ? dot / size : 0};
	}
}

int dl_merge_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *contributions,
	size_t ncontributions, float *update, struct dl_share *shares,
	struct dl_err *e)
{
	struct merge g = {.k = dl_kernels(),
		.segments = segments,
		.update = update,
		.compare = shares != NULL};
	double changed;
	int code;

	code = dl_party_init(&g.party, contributions, ncontributions, e);
	if (code)
		return code;
	g.square = dl_alloc_array(nsegments * g.party.m, sizeof *g.square);
	g.dot = dl_alloc_array(nsegments * g.party.m, sizeof *g.dot);
	g.changed = dl_alloc_array(nsegments, sizeof *g.changed);
	merge_segments(&g, pool, nsegments);
	changed = add_up(g.changed, nsegments);
	if (shares) {
		memset(shares, 0, ncontributions * sizeof *shares);
		report(&g, nsegments, contributions, changed, shares);
	}
	dl_party_release(&g.party);
	free(g.square);
	free(g.dot);
	free(g.changed);
	return isfinite(changed)
		       ? 0
		       : dl_fail(e, DL_DATA, "the merged update is not finite");
}
