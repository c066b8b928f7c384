/*
 * A bucket of tokens: something that may happen so many times at once, and
 * then once in so long. Pure; the caller brings the time. All zeroes is full.
 */
#ifndef DL_LINK_BUCKET_H
#define DL_LINK_BUCKET_H

#include <stdint.h>

struct dl_bucket {
	int64_t full_at; /* when no token will be missing; private */
};

/* How big it is, and how long one token takes to come back. */
struct dl_allowance {
	unsigned burst; /* > 0 */
	int64_t each;	/* ns > 0 */
};

/* Takes a token: 1, or 0 when there is none. */
static inline int dl_bucket_take(
	struct dl_bucket *b, struct dl_allowance a, int64_t now)
{
	int64_t missing = b->full_at > now ? b->full_at - now : 0;

	if (missing > (int64_t)(a.burst - 1) * a.each)
		return 0;
	b->full_at = now + missing + a.each;
	return 1;
}

/* Puts one back, for what the other side was asked for. */
static inline void dl_bucket_give(struct dl_bucket *b, struct dl_allowance a)
{
	b->full_at -= a.each;
}

#endif
