/*
 * The merge rules and the outer step as they are written down, in double
 * precision, one obvious loop each: what the kernels are checked against.
 */
#ifndef TESTS_MERGE_REFERENCE_H
#define TESTS_MERGE_REFERENCE_H

#include "merge/merge.h"
#include "merge/outer.h"

/* Merges into update[] as dl_merge_fragment does; every delta is given. */
void reference_merge(const struct dl_segment *segments, size_t nsegments,
	const struct dl_contribution *from, size_t m, double *update);

/* One outer step of n elements that all have this rule. */
void reference_step(const struct dl_outer *outer, enum dl_rule rule, size_t n,
	const double *update, double *theta, double *momentum);

#endif
