#include "base/rng.h"

#include <math.h>

#include "base/exact.h"

uint64_t dl_rng_key(uint64_t seed, uint64_t part)
{
	return dl_rng_at(dl_rng_mix(seed + UINT64_C(0x9e3779b97f4a7c15)), part);
}

uint64_t dl_rng_next(struct dl_rng *r)
{
	return dl_rng_at(r->key, r->counter++);
}

uint64_t dl_rng_below(struct dl_rng *r, uint64_t n)
{
	uint64_t tail = (UINT64_MAX % n + 1) % n, x;

	/* Values past the last whole multiple of n would be drawn too often. */
	do
		x = dl_rng_next(r);
	while (x > UINT64_MAX - tail);
	return x % n;
}

double dl_rng_uniform(struct dl_rng *r)
{
	return (double)(dl_rng_next(r) >> 11) * 0x1p-53;
}

double dl_rng_normal(struct dl_rng *r)
{
	double u = 1 - dl_rng_uniform(r), v = dl_rng_uniform(r);

	return sqrt(-2 * dl_exact_log(u)) * dl_exact_cos_turn(v);
}

double dl_rng_exponential(struct dl_rng *r)
{
	return -dl_exact_log(1 - dl_rng_uniform(r));
}
