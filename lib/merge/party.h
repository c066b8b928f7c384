/*
 * Who takes part in a merge, and what each rule multiplies their deltas by:
 * every rule is a sum of deltas, each times one coefficient a segment.
 */
#ifndef DL_MERGE_PARTY_H
#define DL_MERGE_PARTY_H

#include "merge/merge.h"

/* The contributions that weigh anything, in byte order of names. */
struct dl_party {
	size_t m;
	const struct dl_contribution **who; /* [m] */
	double *part;			    /* [m] of the sum of weights */
	size_t heaviest;		    /* the first of the greatest */
};

/* 0, DL_NO when nobody is left, or DL_DATA; release it only after 0. */
int dl_party_init(struct dl_party *p, const struct dl_contribution *c, size_t n,
	struct dl_err *e);
void dl_party_release(struct dl_party *p);

/* The coefficients of u, the weighted mean of directions; norm[m] is of the
 * deltas before scaling. */
void dl_party_direct(
	const struct dl_party *p, const double *norm, double *coef);

/*
 * The coefficients of the merged delta by rule. norm[m] and length, which is
 * |u|, are used by rda alone: t R u/|u| + (1 - t) mean, t = min(1, 64 |u|).
 */
void dl_party_weigh(const struct dl_party *p, enum dl_rule rule,
	const double *norm, double length, double *coef);

#endif
