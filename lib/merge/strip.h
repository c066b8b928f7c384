/*
 * Deltas are worked on this many elements at a time, all of them one after
 * another, so that what is between stays in the nearest cache.
 */
#ifndef DL_MERGE_STRIP_H
#define DL_MERGE_STRIP_H

#include "merge/kernels.h"
#include "merge/outer.h"

enum { DL_STRIP = DL_MERGE_BLOCK / 4 };

/* n values from offset on, decoded into scratch unless they lie there. */
static inline const float *dl_strip(const struct dl_contribution *c,
	size_t offset, size_t n, float *scratch)
{
	if (c->delta)
		return c->delta + offset;
	c->read(c->ctx, offset, n, scratch);
	return scratch;
}

/* Where they lie, or what they are, in scratch. */
static inline struct dl_codes dl_strip_codes(const struct dl_contribution *c,
	size_t offset, size_t n, float *scratch)
{
	struct dl_codes codes;

	if (!c->delta && c->codes && !c->codes(c->ctx, offset, n, &codes))
		return codes;
	return (struct dl_codes){.codec = DL_CODEC_F32,
		.codes = dl_strip(c, offset, n, scratch)};
}

/* dl_outer_step of a segment's n elements, from theta to next, which may be
 * theta. */
void dl_outer_strip(const struct dl_kernels *k, const struct dl_outer *outer,
	enum dl_rule rule, float *next, const float *theta, float *momentum,
	const float *update, size_t n);

#endif
