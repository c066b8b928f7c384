#include "memory.h"

#include <stdint.h>
#include <string.h>

typedef uint64_t wide __attribute__((vector_size(64)));
enum { SUMS = 4 };

struct work {
	const unsigned char *from;
	unsigned char *to;
};

/* Where the sums go, so that they are made. */
static volatile uint64_t seen;

static void read_part(void *ctx, size_t i)
{
	const struct work *w = ctx;
	const unsigned char *x = w->from + i * MEMORY_PART;
	wide sum[SUMS] = {{0}}, v;

	for (size_t at = 0; at < MEMORY_PART; at += sizeof sum)
		for (size_t k = 0; k < SUMS; k++) {
			memcpy(&v, x + at + k * sizeof v, sizeof v);
			sum[k] += v;
		}
	sum[0] += sum[1] + sum[2] + sum[3];
	seen = sum[0][0];
}

static void copy_part(void *ctx, size_t i)
{
	const struct work *w = ctx;

	memcpy(w->to + i * MEMORY_PART, w->from + i * MEMORY_PART, MEMORY_PART);
}

void memory_read(struct dl_pool *pool, const void *x, size_t n)
{
	struct work w = {x, NULL};

	dl_pool_run(pool, n / MEMORY_PART, read_part, &w);
}

void memory_copy(struct dl_pool *pool, void *to, const void *from, size_t n)
{
	struct work w = {from, to};

	dl_pool_run(pool, n / MEMORY_PART, copy_part, &w);
}
