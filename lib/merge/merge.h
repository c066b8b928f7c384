/*
 * Merging: the deltas that learners pushed for one fragment become one update.
 *
 * The same contributions give the same bits, whatever their order, the number
 * of threads or the CPU: they are combined in byte order of learner names,
 * norms are summed in double over fixed blocks that are added in order, and a
 * merged element is summed in double and rounded once.
 *
 * The length of the mean direction comes from inner products (merge/gram.h). A
 * product has an error of double's, in proportion to 1 where the length is
 * small; so below 1/16 the length is summed from the elements instead, and
 * rda's turn to the mean, below 1/64, goes by one as exact as the norms are.
 */
#ifndef DL_MERGE_MERGE_H
#define DL_MERGE_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"
#include "base/rule.h"
#include "tensor/quant.h"

/* A tensor's place in a fragment, which is one packed array of f32. */
struct dl_segment {
	size_t offset, n; /* elements */
	enum dl_rule rule;
};

/* Puts elements [offset, offset + n) of a fragment into out. */
typedef void dl_read_fn(const void *ctx, size_t offset, size_t n, float *out);

/* Where those elements, n > 0, lie in codes that give what reading does; -1
 * when they must be read. */
typedef int dl_codes_fn(
	const void *ctx, size_t offset, size_t n, struct dl_codes *out);

/* What one learner brings to a round. */
struct dl_contribution {
	const char *name; /* the learner; each at most once a merge */
	double weight;	  /* see dl_merge_weight; 0 leaves it out, unread */
	double scale;	  /* above 0: multiplies the delta (clipping); 1 exact.
			   * The rule last ignores it. */
	/* New minus base, packed as the fragment; or NULL, and then read is
	 * called, from any thread and more than once, so that pushes can stay
	 * encoded until they are merged. What it reads lies in one segment,
	 * DL_MERGE_BLOCK at most, and starts a multiple of DL_MERGE_BLOCK / 8
	 * after the segment's start. */
	const float *delta;
	dl_read_fn *read;
	dl_codes_fn *codes; /* NULL: there are none */
	const void *ctx;
};

/* The elements that one read asks for at most, counted from a segment's
 * start: every sum is made of such blocks, so their size is part of what
 * decides the bits. */
enum { DL_MERGE_BLOCK = 4096 };

/* What a contribution amounted to, over all segments. */
struct dl_share {
	double weight; /* of the sum of weights: 0 to 1 */
	double norm;   /* |delta| after scaling */
	double cosine; /* between delta and update; 0 when either is 0 */
};

/*
 * How much a contribution weighs (PAPER.md, token-weighted merging): tokens *
 * tokens / steps, quantity times quality; 0 when either is 0.
 */
double dl_merge_weight(uint64_t tokens, uint64_t steps);

/*
 * Merges ncontributions deltas into update, segment by segment: rda by
 * radial-directional averaging, which falls back to the mean as directions
 * cancel; mean and stat by the weighted mean; last takes the heaviest
 * contributor's delta (the first by name among equals). Elements of alias
 * segments, and those in no segment, are left alone. A lone contributor's
 * delta passes bit for bit.
 *
 * shares, unless NULL, has one entry a contribution, in the caller's order,
 * and costs more arithmetic. Returns 0; DL_NO, with nothing written, when no
 * weight remains: then there is no outer step either; DL_DATA for a name that
 * comes twice, a weight or scale out of range, or an update that is not finite
 * (an element that was not, or overflow): then update is not to be used.
 */
int dl_merge_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *contributions,
	size_t ncontributions, float *update, struct dl_share *shares,
	struct dl_err *e);

/* sum = sum + scale * x, over n elements in plain f32: for pushes of one
 * learner that meet in a round, in order of their sequence numbers, each with
 * its own scale; the contribution's is 1 then. */
void dl_merge_add(float *sum, double scale, const float *x, size_t n);

/*
 * The Euclidean norm of n elements, exact but for rounding in double: it
 * neither underflows nor overflows, so it is finite exactly when every element
 * is, and one pass finds NaN and infinity too.
 */
double dl_norm(struct dl_pool *pool, const float *x, size_t n);
/* Of a fragment, by what its segments amount to, one after another: bit for bit
 * the root of the sum of their squares (merge/gram.h). Of c only the delta is
 * wanted. */
double dl_norm_fragment(struct dl_pool *pool, const struct dl_segment *segments,
	size_t nsegments, const struct dl_contribution *c);

/* The first element that is NaN or infinite, or n: for the message. */
size_t dl_find_nonfinite(const float *x, size_t n);

#endif
