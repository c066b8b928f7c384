/*
 * Logical clocks: versions of fragments and the steps at which they are due.
 */
#ifndef DL_SYNC_CLOCK_H
#define DL_SYNC_CLOCK_H

#include <stdint.h>

/* epoch.number; 0.0 is none. The epoch rises whenever a syncer starts from
 * saved state, so that versions lost with it are never taken for new ones. */
struct dl_version {
	uint64_t epoch, number;
};

/* Below, equal to or above 0 as a is older than, is, or is newer than b. */
static inline int dl_version_cmp(struct dl_version a, struct dl_version b)
{
	if (a.epoch != b.epoch)
		return a.epoch < b.epoch ? -1 : 1;
	return (a.number > b.number) - (a.number < b.number);
}

/* What is made on v, as a push says it to a syncer that has newest: numbers go
 * on across epochs, so a higher one is of a history that was lost. */
static inline struct dl_version dl_version_base(
	struct dl_version v, struct dl_version newest)
{
	return !v.epoch || v.number > newest.number ? newest : v;
}

/* Fragment p of P is due at s > 0 with s mod H = floor(p*H/P). */
struct dl_schedule {
	uint32_t fragments; /* P > 0 */
	uint64_t h;         /* H > 0 */
};

/* The largest due step of p that is at most s; 0 when there is none yet. */
static inline uint64_t dl_due_latest(struct dl_schedule d, uint32_t p,
	uint64_t s)
{
	uint64_t offset = (uint64_t)p * d.h / d.fragments;

	return s < offset ? 0 : s - (s - offset) % d.h;
}

/* The fragments from *first up to *end are those that are due at s > 0. */
static inline void dl_due_range(struct dl_schedule d, uint64_t s,
	uint32_t *first, uint32_t *end)
{
	uint64_t at = s % d.h * d.fragments;

	*first = (uint32_t)((at + d.h - 1) / d.h);
	*end = (uint32_t)((at + d.fragments + d.h - 1) / d.h);
}

static inline int dl_due(struct dl_schedule d, uint32_t p, uint64_t s)
{
	return s > 0 && dl_due_latest(d, p, s) == s;
}

#endif
