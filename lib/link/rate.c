#include "link/rate.h"

void dl_rate_take(struct dl_rate *r, uint64_t n, int64_t now)
{
	uint64_t ns;

	if (!r->bytes)
		return;
	if (r->next < now - DL_RATE_BURST)
		r->next = now - DL_RATE_BURST;
	/* Rounded up: many small takings are no way around the rate. */
	ns = n / r->bytes * DL_SECOND;
	ns += (n % r->bytes * DL_SECOND + r->bytes - 1) / r->bytes;
	r->next += (int64_t)ns;
}

int64_t dl_rate_next(const struct dl_rate *r)
{
	return r->bytes ? r->next : INT64_MIN;
}
