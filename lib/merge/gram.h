/*
 * Inner products of deltas, segment by segment: they give every norm, and the
 * length of the mean direction, without reading the deltas again, so that they
 * can be gathered as deltas come.
 *
 * The product of two deltas is summed in double, where each product of two f32
 * is exact: over blocks of DL_MERGE_BLOCK elements from the segment's start,
 * which are added in order. So it has the same bits whoever sums it. Of two in
 * int4, with blocks of one size, it has the bits of dl_quant_dot.
 */
#ifndef DL_MERGE_GRAM_H
#define DL_MERGE_GRAM_H

#include "merge/merge.h"

/* Of at most so many contributions the length is had from products: these grow
 * with the square of their number, and one more reading does not. */
enum { DL_GRAM_MOST = DL_QUANT_MANY };

/* The product over one block, n <= DL_MERGE_BLOCK; either order is the same. */
double dl_gram_block(
	const struct dl_codes *x, const struct dl_codes *y, size_t n);

/* The products of m <= DL_GRAM_MOST contributions over such a block of n
 * elements from offset on, each bit for bit the same: of the pairs (i, j >= i)
 * in order, m (m + 1) / 2 of them. */
void dl_gram_pairs(const struct dl_contribution *const *who, size_t m,
	size_t offset, size_t n, double *sum);

/* The products of m <= DL_GRAM_MOST contributions, product[s * m * m + i * m +
 * j], of every segment that is rda; of others their squares, if `all`. What is
 * not summed is 0. */
void dl_gram(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *const *who, size_t m,
	int all, double *product);

#endif
