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

static double norm(struct dl_pool *pool, struct norm *s, size_t n)
{
	const struct dl_segment all = {0, n, DL_MEAN};
	size_t count = dl_blocks_cut(&all, 1, &s->blocks);
	double sum = 0;

	s->k = dl_kernels();
	s->square = dl_alloc_array(count, sizeof *s->square);
	dl_pool_run(pool, count, square_block, s);
	for (size_t i = 0; i < count; i++)
		sum += s->square[i];
	free(s->square);
	free(s->blocks);
	return sqrt(sum);
}

double dl_norm(struct dl_pool *pool, const float *x, size_t n)
{
	struct norm s = {.x = x};

	return norm(pool, &s, n);
}

double dl_norm_read(
	struct dl_pool *pool, dl_read_fn *read, const void *ctx, size_t n)
{
	struct norm s = {.read = read, .ctx = ctx};

	return norm(pool, &s, n);
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
