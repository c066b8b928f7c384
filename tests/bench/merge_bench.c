/*
 * How fast eight learners' deltas are merged, GB/s of their bytes as f32,
 * beside the least that memory must do for it: the deltas read, values and
 * momentum copied.
 */
#include "base/mem.h"
#include "bench.h"
#include "memory.h"
#include "merge/outer.h"

#include <stdlib.h>

enum { LEARNERS = 8 };
static const size_t n = 16 << 20; /* f32 a learner: 64 MiB */
static const size_t bytes = n * sizeof(float);

struct merge {
	struct dl_pool *pool;
	struct dl_segment *segments;
	size_t nsegments;
	struct dl_contribution from[LEARNERS];
	float *delta[LEARNERS], *update, *theta, *momentum;
	int reads; /* of the deltas, at least */
};

static void merge(void *ctx)
{
	const struct dl_outer outer = {0.7f, 0.9f, 1};
	struct merge *m = ctx;

	dl_merge_fragment(m->pool, m->segments, m->nsegments, m->from, LEARNERS,
		m->update, NULL, NULL);
	dl_outer_step(m->pool, &outer, m->segments, m->nsegments, m->update,
		m->theta, m->momentum);
}

static void least(void *ctx)
{
	struct merge *m = ctx;

	for (int k = 0; k < m->reads; k++)
		for (size_t j = 0; j < LEARNERS; j++)
			memory_read(m->pool, m->delta[j], bytes);
	memory_copy(m->pool, m->update, m->theta, bytes);
	memory_copy(m->pool, m->update, m->momentum, bytes);
}

static void cut(struct merge *m, size_t segment, enum dl_rule rule)
{
	m->nsegments = n / segment;
	for (size_t i = 0; i < m->nsegments; i++)
		m->segments[i] =
			(struct dl_segment){i * segment, segment, rule};
}

static void init(struct merge *m)
{
	static const char *const names[LEARNERS] = {
		"a", "b", "c", "d", "e", "f", "g", "h"};

	m->segments = dl_alloc_array(n / 1024, sizeof *m->segments);
	m->update = dl_big_alloc(bytes);
	m->theta = dl_big_alloc(bytes);
	m->momentum = dl_big_alloc(bytes);
	for (size_t j = 0; j < LEARNERS; j++) {
		uint32_t x = 1 + (uint32_t)j;

		m->delta[j] = dl_big_alloc(bytes);
		for (size_t i = 0; i < n; i++) {
			x = x * 1664525 + 1013904223;
			m->delta[j][i] = (float)(int32_t)x * 0x1p-40f;
		}
		m->from[j] = (struct dl_contribution){.name = names[j],
			.weight = 1 + (double)j,
			.scale = 1,
			.delta = m->delta[j]};
	}
}

static void release(struct merge *m)
{
	for (size_t j = 0; j < LEARNERS; j++)
		dl_big_free(m->delta[j], bytes);
	dl_big_free(m->update, bytes);
	dl_big_free(m->theta, bytes);
	dl_big_free(m->momentum, bytes);
	free(m->segments);
}

static void measure(struct merge *m, size_t segment, const char *what)
{
	const struct bench b = {
		.unit = "GB/s", .amount = LEARNERS * (double)bytes * 1e-9};
	unsigned threads = dl_pool_threads(m->pool);

	cut(m, segment, DL_RDA);
	m->reads = 2;
	bench_compare(
		&b, merge, least, m, "merge %s, files, %ut", what, threads);
}

int main(void)
{
	struct merge m = {0};

	init(&m);
	for (unsigned threads = 1; threads <= 2; threads++) {
		m.pool = dl_pool_new(threads);
		measure(&m, n, "64 MiB f32");
		measure(&m, 1 << 20, "4 MiB tensors");
		measure(&m, 1 << 14, "64 KiB tensors");
		dl_pool_free(m.pool);
	}
	release(&m);
	return 0;
}
