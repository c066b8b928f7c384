/*
 * Keys that are always the same, and random numbers that repeat, so that a
 * session does too.
 */
#ifndef TESTS_FUZZ_KEYS_H
#define TESTS_FUZZ_KEYS_H

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/rng.h"
#include "link/key.h"

static struct dl_key fuzz_syncer, fuzz_learner;
static struct dl_rng fuzz_rng;

static const char *fuzz_random_name(void)
{
	return "fuzz";
}

static uint32_t fuzz_random(void)
{
	return (uint32_t)dl_rng_next(&fuzz_rng);
}

static void fuzz_random_fill(void *p, size_t n)
{
	for (unsigned char *b = p; n; n--)
		*b++ = (unsigned char)fuzz_random();
}

/* From here on they are the first again. */
static void fuzz_reset_random(void)
{
	fuzz_rng = (struct dl_rng){1, 0};
}

static void fuzz_make_keys(void)
{
	static struct randombytes_implementation repeat = {
		.implementation_name = fuzz_random_name,
		.random = fuzz_random,
		.buf = fuzz_random_fill,
	};
	static int made;

	if (made)
		return;
	made = 1;
	if (randombytes_set_implementation(&repeat) || sodium_init() < 0)
		abort();
	fuzz_reset_random();
	dl_key_make(&fuzz_syncer);
	dl_key_make(&fuzz_learner);
}

#endif
