#include "merge/merge.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "merge/blocks.h"
#include "merge/gram.h"
#include "merge/strip.h"

struct norm {
	struct dl_block *blocks;
	double *square;
	const struct dl_contribution *of;
};

static void square_block(void *ctx, size_t i)
{
	const struct norm *s = ctx;
	const struct dl_block *b = &s->blocks[i];
	float part[DL_MERGE_BLOCK];
	struct dl_codes x = dl_strip_codes(s->of, b->offset, b->n, part);

	s->square[i] = dl_gram_block(&x, &x, b->n);
}

double dl_norm_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *c)
{
	struct norm s = {.of = c};
	size_t count = dl_blocks_cut(segments, nsegments, &s.blocks);
	double sum = 0, part = 0;

	s.square = dl_alloc_array(count, sizeof *s.square);
	dl_pool_run(pool, count, square_block, &s);
	for (size_t i = 0; i < count; i++) {
		part += s.square[i];
		if (i + 1 < count &&
			s.blocks[i + 1].segment == s.blocks[i].segment)
			continue;
		sum += part;
		part = 0;
	}
	free(s.square);
	free(s.blocks);
	return sqrt(sum);
}

double dl_norm(struct dl_pool *pool, const float *x, size_t n)
{
	const struct dl_segment all = {0, n, DL_MEAN};
	const struct dl_contribution c = {.delta = x};

	return dl_norm_fragment(pool, &all, 1, &c);
}

size_t dl_find_nonfinite(const float *x, size_t n)
{
	enum { MANY = 256 };
	size_t i = 0;

	while (n - i >= MANY && dl_kernels()->finite(x + i, MANY))
		i += MANY;
	while (i < n && isfinite(x[i]))
		i++;
	return i;
}

void dl_merge_add(float *sum, double scale, const float *x, size_t n)
{
	dl_kernels()->add(sum, (float)scale, x, n);
}
