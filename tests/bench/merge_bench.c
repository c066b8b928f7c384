/*
 * How fast eight learners' deltas are merged and the outer step made, GB/s of
 * their bytes as f32, beside the least that memory must do for it: the deltas
 * read, twice when their norms are not known, values and momentum copied. And
 * from codes, beside the same from f32.
 */
#include "base/mem.h"
#include "bench.h"
#include "memory.h"
#include "merge/gram.h"
#include "merge/step.h"
#include "tensor/quant.h"

#include <stdlib.h>

enum { LEARNERS = 8 };
static const size_t n = 16 << 20; /* f32 a learner: 64 MiB */
static const size_t bytes = n * sizeof(float);
static const struct bench rate = {
	.unit = "GB/s", .amount = LEARNERS * (double)bytes * 1e-9};

struct merge {
	struct dl_pool *pool;
	struct dl_segment *segments;
	size_t nsegments;
	struct dl_contribution from[LEARNERS], coded[LEARNERS];
	struct codes {
		enum dl_codec codec;
		unsigned char *codes, *scales;
	} codes[LEARNERS];
	float *delta[LEARNERS], *copy, *theta, *momentum;
	double *products;
	int known; /* the products are */
};

static void step(struct merge *m, const struct dl_contribution *from)
{
	const struct dl_step step = {.outer = {0.7f, 0.9f, 1},
		.theta = m->theta,
		.next = m->theta,
		.momentum = m->momentum};

	bench_need(
		!dl_merge_step(m->pool, m->segments, m->nsegments, from,
			LEARNERS, m->known ? m->products : NULL, &step, NULL),
		"merge");
}

static void merge(void *ctx)
{
	struct merge *m = ctx;

	step(m, m->from);
}

static void merge_codes(void *ctx)
{
	struct merge *m = ctx;

	step(m, m->coded);
}

static void least(void *ctx)
{
	struct merge *m = ctx;

	for (int k = m->known ? 1 : 0; k < 2; k++)
		for (size_t j = 0; j < LEARNERS; j++)
			memory_read(m->pool, m->delta[j], bytes);
	memory_copy(m->pool, m->copy, m->theta, bytes);
	memory_copy(m->pool, m->copy, m->momentum, bytes);
}

/* What a push in codes is read by. */
static void read_codes(const void *ctx, size_t at, size_t count, float *out)
{
	const struct codes *c = ctx;

	dl_quant_decode(c->codec, DL_QUANT_BLOCK,
		c->codes + dl_codec_bytes(c->codec, at),
		c->scales + 2 * (at / DL_QUANT_BLOCK), count, out);
}

static int find_codes(
	const void *ctx, size_t at, size_t count, struct dl_codes *out)
{
	const struct codes *c = ctx;

	(void)count;
	*out = (struct dl_codes){c->codec, DL_QUANT_BLOCK,
		c->codes + dl_codec_bytes(c->codec, at),
		c->scales + 2 * (at / DL_QUANT_BLOCK)};
	return 0;
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
	m->copy = dl_big_alloc(bytes);
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
		m->codes[j].codes = dl_big_alloc(bytes / 2);
		m->codes[j].scales = dl_big_alloc(bytes / DL_QUANT_BLOCK);
		m->coded[j] = m->from[j];
		m->coded[j].delta = NULL;
		m->coded[j].read = read_codes;
		m->coded[j].codes = find_codes;
		m->coded[j].ctx = &m->codes[j];
	}
}

static void encode(struct merge *m, enum dl_codec codec)
{
	const struct dl_quant q = {.codec = codec, .block = DL_QUANT_BLOCK};

	for (size_t j = 0; j < LEARNERS; j++) {
		m->codes[j].codec = codec;
		dl_quant_encode(&q, 0, 0, m->delta[j], n, m->codes[j].codes,
			m->codes[j].scales);
	}
}

static void release(struct merge *m)
{
	for (size_t j = 0; j < LEARNERS; j++) {
		dl_big_free(m->delta[j], bytes);
		dl_big_free(m->codes[j].codes, bytes / 2);
		dl_big_free(m->codes[j].scales, bytes / DL_QUANT_BLOCK);
	}
	dl_big_free(m->copy, bytes);
	dl_big_free(m->theta, bytes);
	dl_big_free(m->momentum, bytes);
	free(m->segments);
}

static void measure(struct merge *m, size_t segment, const char *what)
{
	const struct dl_contribution *who[LEARNERS];
	unsigned threads = dl_pool_threads(m->pool);

	cut(m, segment, DL_RDA);
	m->known = 0;
	bench_compare(&rate, merge, least, m, "merge %s, norms unknown, %ut",
		what, threads);
	for (size_t j = 0; j < LEARNERS; j++)
		who[j] = &m->from[j];
	m->products = dl_alloc_array(
		m->nsegments * LEARNERS * LEARNERS, sizeof *m->products);
	dl_gram(m->pool, m->segments, m->nsegments, who, LEARNERS, 1,
		m->products);
	m->known = 1;
	bench_compare(&rate, merge, least, m, "merge %s, arrived, %ut", what,
		threads);
}

static void measure_codes(struct merge *m, enum dl_codec codec)
{
	encode(m, codec);
	for (m->known = 0; m->known < 2; m->known++)
		bench_compare(&rate, merge_codes, merge, m,
			"merge %s, %s, beside f32, %ut", dl_codec_name(codec),
			m->known ? "arrived" : "norms unknown",
			dl_pool_threads(m->pool));
}

int main(void)
{
	struct merge m = {0};

	init(&m);
	for (unsigned threads = 1; threads <= 2; threads++) {
		m.pool = dl_pool_new(threads);
		measure(&m, 1 << 14, "64 KiB tensors");
		free(m.products);
		measure(&m, n, "64 MiB f32");
		measure_codes(&m, DL_CODEC_BF16);
		measure_codes(&m, DL_CODEC_INT4);
		free(m.products);
		dl_pool_free(m.pool);
	}
	release(&m);
	return 0;
}
