/*
 * The first half of a merge: what each delta is multiplied by in each segment.
 * Without inner products it reads the deltas; with them it does not, unless
 * directions cancel.
 */
#ifndef DL_MERGE_WEIGH_H
#define DL_MERGE_WEIGH_H

#include "merge/alike.h"
#include "merge/merge.h"
#include "merge/party.h"

/* What is merged, as dl_merge_fragment and dl_merge_step are given it. */
struct dl_merging {
	struct dl_pool *pool;
	const struct dl_segment *segments;
	size_t nsegments;
	const struct dl_contribution *from;
	size_t n;
	const double *products; /* NULL: not known */
	int bound;		/* `bounded` is wanted */
	struct dl_alike *alike; /* gets how alike they are, unless NULL */
};

struct dl_weighed {
	struct dl_party party;
	double *coef; /* [s * party.m + j] */
	/* All deltas are finite, and so is whatever these coefficients make of
	 * them. */
	int bounded;
};

/* 0, DL_NO when nobody weighs anything, or DL_DATA; release it after 0. */
int dl_weigh(
	struct dl_weighed *w, const struct dl_merging *g, struct dl_err *e);
void dl_weighed_release(struct dl_weighed *w);

/* The sum of a strip of deltas times their coefficients, which are those of
 * the strip's segment; as dl_quant_add, with what is beside the strip. */
void dl_weighed_sum(const struct dl_party *p, const double *coef, size_t at,
	size_t n, double *sum, const struct dl_beside *beside);

#endif
