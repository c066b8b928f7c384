#include "merge/merge.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/kernels.h"

struct norm {
	const struct dl_kernels *k;
	const struct dl_block *blocks;
	const float *x;
	double *square;
};

static void square_block(void *ctx, size_t i)
{
	const struct norm *s = ctx;
	const struct dl_block *b = &s->blocks[i];

	s->square[i] = s->k->square(s->x + b->offset, b->n);
}

double dl_norm(struct dl_pool *pool, const float *x, size_t n)
{
	const struct dl_segment all = {0, n, DL_MEAN};
	struct dl_block *blocks;
	size_t count = dl_blocks_cut(&all, 1, &blocks);
	double sum = 0, *square = dl_alloc_array(count, sizeof *square);
	struct norm s = {dl_kernels(), blocks, x, square};

	dl_pool_run(pool, count, square_block, &s);
	for (size_t i = 0; i < count; i++)
		sum += square[i];
	free(square);
	free(blocks);
	return sqrt(sum);
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
