#include "merge/alike.h"

/* The products of all deltas in all segments that are rda. */
struct products {
	const struct dl_segment *segments;
	size_t nsegments;
	const double *product;
	size_t n;
};

static double sum_of(const struct products *p, size_t i, size_t j)
{
	const double *product = p->product + i * p->n + j;
	double sum = 0;

	for (size_t s = 0; s < p->nsegments; s++)
		if (p->segments[s].rule == DL_RDA)
			sum += product[s * p->n * p->n];
	return sum;
}

/* NaN when one has no length. */
static double cosine(const struct products *p, size_t i, size_t j)
{
	double size = sqrt(sum_of(p, i, i)) * sqrt(sum_of(p, j, j));

	return size > 0 ? sum_of(p, i, j) / size : NAN;
}

void dl_alike(struct dl_alike *out, const struct dl_segment *segments,
	size_t nsegments, const double *product, size_t n, const size_t *index,
	size_t m)
{
	const struct products p = {segments, nsegments, product, n};
	double sum = 0, least = INFINITY, pairs = 0;

	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < i; j++) {
			double c = cosine(&p, index[i], index[j]);

			if (isnan(c))
				continue;
			sum += c;
			least = fmin(least, c);
			pairs++;
		}
	*out = (struct dl_alike)DL_ALIKE_UNKNOWN;
	if (pairs > 0)
		*out = (struct dl_alike){sum / pairs, least};
}
