#include "merge/merge.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/kernels.h"

struct norm {
	const struct dl_kernels *k;
	struct dl_block *blocks;
	double *square;
	const float *x; /* or NULL, and then read */
	dl_read_fn *read;
	const void *ctx;
};

static void square_block(void *ctx, size_t i)
{
	const struct norm *s = ctx;
	const struct dl_block *b = &s->blocks[i];
	float part[DL_MERGE_BLOCK];

	if (!s->x)
		s->read(s->ctx, b->offset, b->n, part);
	s->square[i] = s->k->square(s->x ? s->x + b->offset : part, b->n);
}

static double norm(struct dl_pool *pool, struct norm *s,
	const struct dl_segment *segments, size_t nsegments)
{
	size_t count = dl_blocks_cut(segments, nsegments, &s->blocks);
	double sum = 0, part = 0;

	s->k = dl_kernels();
	s->square = dl_alloc_array(count, sizeof *s->square);
	dl_pool_run(pool, count, square_block, s);
	for (size_t i = 0; i < count; i++) {
		part += s->square[i];
		if (i + 1 < count &&
			s->blocks[i + 1].segment == s->blocks[i].segment)
			continue;
		sum += part;
		part = 0;
	}
	free(s->square);
	free(s->blocks);
	return sqrt(sum);
}

double dl_norm(struct dl_pool *pool, const float *x, size_t n)
{
	const struct dl_segment all = {0, n, DL_MEAN};
	struct norm s = {.x = x};

	return norm(pool, &s, &all, 1);
}

double dl_norm_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const float *x, dl_read_fn *read, const void *ctx)
{
	struct norm s = {.x = x, .read = read, .ctx = ctx};

	return norm(pool, &s, segments, nsegments);
}

size_t dl_find_nonfinite(const float *x, size_t n)
{
	size_t i = 0;

	while (i < n && isfinite(x[i]))
		i++;
	return i;
}

void dl_merge_add(float *sum, double scale, const float *x, size_t n)
{
	dl_kernels()->add(sum, (float)scale, x, n);
}
