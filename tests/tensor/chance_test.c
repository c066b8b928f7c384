/*
 * What is encoded by chance, against a plain encoder, at lengths that end
 * anywhere in a block and at every level of the CPU.
 */
#include "base/rng.h"
#include "levels.h"
#include "tensor/quant.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LONGEST = 3000, KEY = 5 };

/* [0, 1) for element i, from its half of 64 random bits. */
static float draw(uint64_t i)
{
	uint64_t bits = dl_rng_at(KEY, i / 2);

	return (float)(i % 2 ? bits >> 40 : bits >> 8 & 0xffffff) * 0x1p-24f;
}

/* The least BF16, a normal number, that makes the largest code reach. */
static float scale_of(enum dl_codec c, const float *x, size_t n)
{
	float most = 0, scale;
	int e;

	for (size_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(x[i]));
	if (most <= 0)
		return 0;
	scale = most / (c == DL_CODEC_INT8 ? 127 : c == DL_CODEC_INT4 ? 7 : 1);
	frexpf(scale, &e);
	scale = ldexpf(ceilf(ldexpf(scale, 8 - e)), e - 8);
	return fmaxf(scale, FLT_MIN);
}

static unsigned power(float y, float u)
{
	float m = fabsf(y), low;
	int e, k;

	frexpf(m, &e);
	low = ldexpf(0.5f, e);
	k = m < 0x1p-6f ? m / 0x1p-6f > u : e + 6 + ((m - low) / low > u);
	k = k > 7 ? 7 : k;
	return (unsigned)(k && y < 0 ? k | 8 : k);
}

static unsigned code_of(enum dl_codec c, float y, float u)
{
	float low = floorf(y), k = low + (float)(y - low > u);

	switch (c) {
	case DL_CODEC_INT8:
		return (unsigned)(int)fmaxf(fminf(k, 127), -127) & 255;
	case DL_CODEC_INT4:
		return (unsigned)(int)fmaxf(fminf(k, 7), -7) & 15;
	case DL_CODEC_FP4:
		return power(y, u);
	case DL_CODEC_INT2:
		return (unsigned)(int)fmaxf(fminf(k, 1), -1) & 3;
	default:
		return 0.5f + y / 2 <= u;
	}
}

static void plain_block(enum dl_codec c, uint64_t at, const float *x, size_t n,
	unsigned char *codes, unsigned char *scale)
{
	unsigned width = (unsigned)dl_codec_bytes(c, 8);
	float s = scale_of(c, x, n);
	uint32_t bits;

	memset(codes, 0, dl_codec_bytes(c, n));
	memcpy(&bits, &s, sizeof bits);
	dl_put_le16(scale, (uint16_t)(bits >> 16));
	for (size_t i = 0; s > 0 && i < n; i++)
		codes[i * width / 8] |=
			(unsigned char)(code_of(c, x[i] / s, draw(at + i))
					<< i * width % 8);
}

static double value(enum dl_codec c, uint16_t bits)
{
	unsigned char raw[2];
	float v;

	dl_put_le16(raw, bits);
	dl_quant_decode(c, 0, raw, NULL, 1, &v);
	return (double)v;
}

/* F16 and BF16: the nearest, or its neighbour on the other side of x. */
static uint16_t narrow(enum dl_codec c, float x, float u)
{
	const struct dl_quant nearest = {.codec = c};
	unsigned char raw[2];
	uint16_t bits, other;
	double v, w;

	dl_quant_encode(&nearest, 0, 0, &x, 1, raw, NULL);
	bits = dl_le16(raw);
	v = value(c, bits);
	other = (uint16_t)(fabs(v) < fabs((double)x) ? bits + 1 : bits - 1);
	w = value(c, other);
	if (v == (double)x || !isfinite(v) || !isfinite(w))
		return bits;
	return ((double)x - v) / (w - v) > (double)u ? other : bits;
}

static void plain(const struct dl_quant *q, uint64_t at, const float *x,
	size_t n, unsigned char *codes, unsigned char *scales)
{
	if (!dl_codec_is_scaled(q->codec))
		for (size_t i = 0; i < n; i++)
			dl_put_le16(codes + 2 * i,
				narrow(q->codec, x[i], draw(at + i)));
	else
		for (size_t i = 0; i < n; i += q->block)
			plain_block(q->codec, at + i, x + i,
				n - i < q->block ? n - i : q->block,
				codes + dl_codec_bytes(q->codec, i),
				scales + 2 * (i / q->block));
}

static int same(const struct dl_quant *q, uint64_t at, const float *x, size_t n)
{
	static unsigned char codes[2][2 * LONGEST + 1], scales[2][LONGEST];
	size_t bytes = dl_codec_bytes(q->codec, n);
	size_t scale_bytes = 2 * dl_codec_scales(q->codec, q->block, n);

	codes[0][bytes] = codes[1][bytes] = 99;
	scales[0][scale_bytes] = scales[1][scale_bytes] = 99;
	plain(q, at, x, n, codes[0], scales[0]);
	dl_quant_encode(q, KEY, at, x, n, codes[1], scales[1]);
	return !memcmp(codes[0], codes[1], bytes + 1) &&
	       !memcmp(scales[0], scales[1], scale_bytes + 1);
}

/* Every length up to two blocks and some; of large blocks those about a
 * block's end, and some between. */
static void test_codec(enum dl_codec c, uint32_t block, const float *x)
{
	const struct dl_quant q = {c, block, 1, 0};
	size_t tested = 0, right = 0;

	for (size_t n = 0; n < 2 * block + 20; n++)
		if (block <= 128 || n % block < 18 || n % block + 18 > block ||
			n % 97 == 0) {
			right += same(&q, n % 3 * block, x, n);
			tested++;
		}
	ok(right == tested, "%s, blocks of %u: %zu of %zu lengths",
		dl_codec_name(c), (unsigned)block, right, tested);
}

int main(int argc, char **argv)
{
	static float x[LONGEST];
	struct dl_rng r = {1, 0};

	if (at_all_levels(argc, argv))
		return done_testing();
	/* Also zeros of both signs, values that a codec holds, and some that
	 * scales hardly reach. */
	for (size_t i = 0; i < LONGEST; i++)
		x[i] = (float)dl_rng_normal(&r) * (i % 7	  ? 1e-3f
							  : i % 3 ? 0
								  : 1e-39f);
	for (size_t i = 0; i < LONGEST; i += 5)
		x[i] = ldexpf(i % 2 ? 1 : -1, -(int)(i % 40));
	for (int c = DL_CODEC_F16; c < DL_CODECS; c++)
		for (uint32_t b = DL_QUANT_BLOCK_MIN; b <= DL_QUANT_BLOCK_MAX;
			b *= 2)
			test_codec((enum dl_codec)c, b, x);
	return done_testing();
}
