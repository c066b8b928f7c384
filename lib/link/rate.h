/*
 * A rate: a token bucket that says when the next bytes may go. Pure; the
 * caller brings the time. Several links may share one.
 *
 * Bytes are taken when they go, whole frames at a time, and what goes beyond
 * the tokens is waited for afterwards. Time in which nothing goes is credited
 * up to DL_RATE_BURST, so no second sees more than the rate, a twentieth of it
 * and one taking.
 */
#ifndef DL_LINK_RATE_H
#define DL_LINK_RATE_H

#include <stdint.h>

#include "base/num.h"

#define DL_RATE_BURST (DL_SECOND / 20)

/* All zeroes: no limit. */
struct dl_rate {
	uint64_t bytes; /* a second; 0: no limit */
	int64_t next;	/* when the next byte may go; private */
};

/* n < 2^32 bytes go, now or whenever dl_rate_next says. */
void dl_rate_take(struct dl_rate *r, uint64_t n, int64_t now);

/* When the next bytes may go: they may once now has reached it. */
int64_t dl_rate_next(const struct dl_rate *r);

#endif
