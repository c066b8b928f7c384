/*
 * A counter-based random generator: the i-th draw of a key is a function of
 * (key, i) alone, so nothing but a counter must ever be saved. Draws have the
 * same bits on every machine. Not for keys.
 */
#ifndef DL_BASE_RNG_H
#define DL_BASE_RNG_H

#include <stdint.h>

/* The finalizer of SplitMix64. */
static inline uint64_t dl_rng_mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* 64 well-mixed bits of (key, counter). */
static inline uint64_t dl_rng_at(uint64_t key, uint64_t counter)
{
	uint64_t x = counter * UINT64_C(0x9e3779b97f4a7c15) ^ key;

	return dl_rng_mix(dl_rng_mix(x) + key);
}

/* A key of its own for a part of a larger seed, such as one learner's data. */
uint64_t dl_rng_key(uint64_t seed, uint64_t part);

struct dl_rng {
	uint64_t key, counter;
};

uint64_t dl_rng_next(struct dl_rng *r);
uint64_t dl_rng_below(struct dl_rng *r, uint64_t n); /* [0, n); n > 0 */
double dl_rng_uniform(struct dl_rng *r);             /* [0, 1) */
double dl_rng_normal(struct dl_rng *r);              /* mean 0, deviation 1 */
double dl_rng_exponential(struct dl_rng *r);         /* mean 1 */

#endif
