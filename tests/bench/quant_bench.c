/*
 * How fast codecs are, beside memcpy of as many f32 values.
 */
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"
#include "bench.h"
#include "memory.h"
#include "tensor/quant.h"

enum { CHUNK = 1 << 16 };
static const size_t n = 8 << 20; /* f32: 32 MiB */

struct quant {
	struct dl_pool *pool;
	struct dl_quant q;
	float *x, *y;
	unsigned char *codes, *scales;
};

static unsigned char *codes_of(const struct quant *b, size_t i)
{
	return b->codes + dl_codec_bytes(b->q.codec, i * CHUNK);
}

static unsigned char *scales_of(const struct quant *b, size_t i)
{
	return b->scales +
	       2 * dl_codec_scales(b->q.codec, b->q.block, i * CHUNK);
}

static void encode_chunk(void *ctx, size_t i)
{
	struct quant *b = ctx;

	dl_quant_encode(&b->q, 1, i * CHUNK, b->x + i * CHUNK, CHUNK,
		codes_of(b, i), scales_of(b, i));
}

static void decode_chunk(void *ctx, size_t i)
{
	struct quant *b = ctx;

	dl_quant_decode(b->q.codec, b->q.block, codes_of(b, i), scales_of(b, i),
		CHUNK, b->y + i * CHUNK);
}

static void encode(void *ctx)
{
	struct quant *b = ctx;

	dl_pool_run(b->pool, n / CHUNK, encode_chunk, b);
}

static void decode(void *ctx)
{
	struct quant *b = ctx;

	dl_pool_run(b->pool, n / CHUNK, decode_chunk, b);
}

static void copy(void *ctx)
{
	struct quant *b = ctx;

	memory_copy(b->pool, b->y, b->x, n * sizeof(float));
}

static void measure(struct quant *q)
{
	const struct bench b = {
		.unit = "GB/s", .amount = (double)(n * sizeof(float)) * 1e-9};
	const char *codec = dl_codec_name(q->q.codec),
		   *how = q->q.stochastic ? " by chance" : "";
	unsigned threads = dl_pool_threads(q->pool);

	bench_compare(
		&b, encode, copy, q, "encode %s%s, %ut", codec, how, threads);
	bench_compare(
		&b, decode, copy, q, "decode %s%s, %ut", codec, how, threads);
}

int main(void)
{
	struct quant b = {.q = {.block = DL_QUANT_BLOCK}};
	struct dl_rng r = {1, 0};

	b.x = dl_big_alloc(n * sizeof(float));
	b.y = dl_big_alloc(n * sizeof(float));
	b.codes = dl_big_alloc(n * sizeof(float));
	b.scales = dl_big_alloc(n / 8);
	for (size_t i = 0; i < n; i++)
		b.x[i] = (float)((double)(dl_rng_next(&r) >> 40) - 0x1p23);
	for (unsigned threads = 1; threads <= 2; threads++) {
		b.pool = dl_pool_new(threads);
		for (int c = DL_CODEC_F16; c < DL_CODECS; c++) {
			b.q.codec = (enum dl_codec)c;
			measure(&b);
		}
		b.q.codec = DL_CODEC_INT4;
		b.q.stochastic = 1;
		measure(&b);
		b.q.stochastic = 0;
		dl_pool_free(b.pool);
	}
	dl_big_free(b.x, n * sizeof(float));
	dl_big_free(b.y, n * sizeof(float));
	dl_big_free(b.codes, n * sizeof(float));
	dl_big_free(b.scales, n / 8);
	return 0;
}
