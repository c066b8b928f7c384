/*
 * How alike the deltas of a merge are: the cosines between them, from their
 * inner products (merge/gram.h). Learners' deltas are nearly orthogonal where
 * radial-directional averaging is at home; near 1 they all learn the same.
 */
#ifndef DL_MERGE_ALIKE_H
#define DL_MERGE_ALIKE_H

#include <math.h>

#include "merge/merge.h"

/* Of two deltas, over all segments that are rda; NaN: not known, or none. */
struct dl_alike {
	double mean, least; /* of all pairs */
};
#define DL_ALIKE_UNKNOWN                                                       \
	{                                                                      \
		NAN, NAN                                                       \
	}

/* Of m deltas: the product of i and j in segment s is product[(s * n +
 * index[i]) * n + index[j]]. Pairs with a delta of length 0 do not count. */
void dl_alike(struct dl_alike *out, const struct dl_segment *segments,
	size_t nsegments, const double *product, size_t n, const size_t *index,
	size_t m);

#endif
