/*
 * How fast merging is, beside what memory allows in the same run: GB/s of
 * learner bytes, medians. Not a test; `make bench` runs it.
 */
#include "base/cpu.h"
#include "base/mem.h"
#include "base/num.h"
#include "merge/outer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEARNERS = 8, TRIES = 7 };
static const size_t n = 16 << 20; /* f32 a learner: 64 MiB */

struct bench {
	struct dl_pool *pool;
	struct dl_segment *segments;
	size_t nsegments;
	struct dl_contribution from[LEARNERS];
	float *delta[LEARNERS], *update, *theta, *momentum;
};

static void merge(struct bench *b)
{
	dl_merge_fragment(b->pool, b->segments, b->nsegments, b->from, LEARNERS,
		b->update, NULL, NULL);
}

static void step(struct bench *b)
{
	const struct dl_outer outer = {0.7f, 0.9f, 1};

	dl_outer_step(b->pool, &outer, b->segments, b->nsegments, b->update,
		b->theta, b->momentum);
}

static void norm(struct bench *b)
{
	dl_norm(b->pool, b->delta[0], n);
}

static void copy_part(void *ctx, size_t i)
{
	struct bench *b = ctx;
	size_t part = n / 64;

	memcpy(b->update + i * part, b->delta[0] + i * part,
		part * sizeof(float));
}

static void copy(struct bench *b)
{
	dl_pool_run(b->pool, 64, copy_part, b);
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The median speed of f, which reads this many bytes. */
static double speed(struct bench *b, void (*f)(struct bench *), double bytes)
{
	double s[TRIES];

	f(b);
	for (int i = 0; i < TRIES; i++) {
		int64_t start = dl_now();

		f(b);
		s[i] = bytes / (double)(dl_now() - start);
	}
	qsort(s, TRIES, sizeof *s, by_size);
	return s[TRIES / 2];
}

static void cut(struct bench *b, size_t segment, enum dl_rule rule)
{
	b->nsegments = n / segment;
	for (size_t i = 0; i < b->nsegments; i++)
		b->segments[i] =
			(struct dl_segment){i * segment, segment, rule};
}

static void init(struct bench *b)
{
	static const char *const names[LEARNERS] = {
		"a", "b", "c", "d", "e", "f", "g", "h"};

	b->segments = dl_alloc_array(n / 1024, sizeof *b->segments);
	b->update = dl_big_alloc(n * sizeof(float));
	b->theta = dl_big_alloc(n * sizeof(float));
	b->momentum = dl_big_alloc(n * sizeof(float));
	for (size_t j = 0; j < LEARNERS; j++) {
		uint32_t x = 1 + (uint32_t)j;

		b->delta[j] = dl_big_alloc(n * sizeof(float));
		for (size_t i = 0; i < n; i++) {
			x = x * 1664525 + 1013904223;
			b->delta[j][i] = (float)(int32_t)x * 0x1p-40f;
		}
		b->from[j] = (struct dl_contribution){.name = names[j],
			.weight = 1 + (double)j,
			.scale = 1,
			.delta = b->delta[j]};
	}
}

static void row(const char *what, double rate, double limit)
{
	printf("%-26s %6.1f GB/s  %4.2f of memcpy\n", what, rate, rate / limit);
}

int main(void)
{
	struct bench b = {0};
	const double bytes = (double)n * sizeof(float);

	init(&b);
	for (unsigned threads = 1; threads <= 2; threads++) {
		double limit;

		b.pool = dl_pool_new(threads);
		printf("%s, %u thread%s\n", dl_cpu_name(dl_cpu_level()),
			threads, threads > 1 ? "s" : "");
		limit = speed(&b, copy, 2 * bytes);
		row("memcpy, both ways", limit, limit);
		cut(&b, n, DL_RDA);
		row("rda, one tensor", speed(&b, merge, LEARNERS * bytes),
			limit);
		cut(&b, 1 << 20, DL_RDA);
		row("rda, tensors of 4 MiB", speed(&b, merge, LEARNERS * bytes),
			limit);
		cut(&b, 1 << 14, DL_RDA);
		row("rda, tensors of 64 KiB",
			speed(&b, merge, LEARNERS * bytes), limit);
		cut(&b, n, DL_MEAN);
		row("mean", speed(&b, merge, LEARNERS * bytes), limit);
		row("norm", speed(&b, norm, bytes), limit);
		row("outer step, 3 in 2 out", speed(&b, step, 5 * bytes),
			limit);
		dl_pool_free(b.pool);
	}
	for (size_t j = 0; j < LEARNERS; j++)
		dl_big_free(b.delta[j], n * sizeof(float));
	dl_big_free(b.update, n * sizeof(float));
	dl_big_free(b.theta, n * sizeof(float));
	dl_big_free(b.momentum, n * sizeof(float));
	free(b.segments);
	return 0;
}
