/*
 * How fast codecs are, beside what memory allows in the same run: GB/s of f32
 * values, best of a few. Not a test; `make bench` runs it.
 */
#include "base/cpu.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/rng.h"
#include "tensor/quant.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 9, CHUNK = 1 << 16 };
static const size_t n = 8 << 20; /* f32: 32 MiB */

struct bench {
	struct dl_pool *pool;
	struct dl_quant q;
	float *x, *y;
	unsigned char *codes, *scales;
};

static void copy(void *ctx, size_t i)
{
	struct bench *b = ctx;

	memcpy(b->y + i * CHUNK, b->x + i * CHUNK, CHUNK * sizeof(float));
}

static unsigned char *codes_of(const struct bench *b, size_t i)
{
	return b->codes + dl_codec_bytes(b->q.codec, i * CHUNK);
}

static unsigned char *scales_of(const struct bench *b, size_t i)
{
	return b->scales +
	       2 * dl_codec_scales(b->q.codec, b->q.block, i * CHUNK);
}

static void encode(void *ctx, size_t i)
{
	struct bench *b = ctx;

	dl_quant_encode(&b->q, 1, i * CHUNK, b->x + i * CHUNK, CHUNK,
		codes_of(b, i), scales_of(b, i));
}

static void decode(void *ctx, size_t i)
{
	struct bench *b = ctx;

	dl_quant_decode(b->q.codec, b->q.block, codes_of(b, i), scales_of(b, i),
		CHUNK, b->y + i * CHUNK);
}

/* GB/s of the values. */
static double speed(struct bench *b, void (*f)(void *, size_t))
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		int64_t start = dl_now(), took;

		dl_pool_run(b->pool, n / CHUNK, f, b);
		took = dl_now() - start;
		best = took < best ? took : best;
	}
	return (double)(n * sizeof(float)) / (double)best;
}

static void row(struct bench *b, double limit)
{
	double e = speed(b, encode), d = speed(b, decode);

	printf("%-5s%-10s encode %6.2f GB/s  %4.2f of memcpy   decode %6.2f "
	       "GB/s  %4.2f of memcpy\n",
		dl_codec_name(b->q.codec), b->q.stochastic ? " by chance" : "",
		e, e / limit, d, d / limit);
}

int main(void)
{
	struct bench b = {.q = {.block = DL_QUANT_BLOCK}};
	struct dl_rng r = {1, 0};

	b.x = dl_big_alloc(n * sizeof(float));
	b.y = dl_big_alloc(n * sizeof(float));
	b.codes = dl_big_alloc(n * sizeof(float));
	b.scales = dl_big_alloc(n / 8);
	for (size_t i = 0; i < n; i++)
		b.x[i] = (float)((double)(dl_rng_next(&r) >> 40) - 0x1p23);
	for (unsigned threads = 1; threads <= 2; threads++) {
		double limit;

		b.pool = dl_pool_new(threads);
		limit = speed(&b, copy);
		printf("%s, %u thread%s: memcpy %.2f GB/s\n",
			dl_cpu_name(dl_cpu_level()), threads,
			threads > 1 ? "s" : "", limit);
		for (int c = 0; c < DL_CODECS; c++) {
			b.q.codec = (enum dl_codec)c;
			row(&b, limit);
		}
		b.q.codec = DL_CODEC_INT4;
		b.q.stochastic = 1;
		row(&b, limit);
		b.q.stochastic = 0;
		dl_pool_free(b.pool);
	}
	dl_big_free(b.x, n * sizeof(float));
	dl_big_free(b.y, n * sizeof(float));
	dl_big_free(b.codes, n * sizeof(float));
	dl_big_free(b.scales, n / 8);
	return 0;
}
