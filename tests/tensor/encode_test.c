/*
 * What is encoded to nearest, against a plain encoder that follows
 * dl-fragment(5), at every length up to where blocks are worked on together
 * and at every level of the CPU.
 */
#include "base/rng.h"
#include "levels.h"
#include "tensor/quant.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { LONGEST = 5000, LANES = 16 };

/* The mean of those |x| above the cut, summed as dl-tools does: in double,
 * element i in lane i % 16, halves of the lanes added until one is left. */
static float mean_above(const float *x, size_t n, float cut, int of_all)
{
	double lane[LANES] = {0};
	size_t above = 0;

	for (size_t i = 0; i < n; i++)
		if (fabsf(x[i]) > cut) {
			lane[i % LANES] += (double)fabsf(x[i]);
			above++;
		}
	for (int half = LANES / 2; half; half /= 2)
		for (int j = 0; j < half; j++)
			lane[j] += lane[j + half];
	if (of_all)
		above = n;
	return above ? (float)(lane[0] / (double)above) : 0;
}

static float best_scale(enum dl_codec c, const float *x, size_t n)
{
	float most = 0, scale, cut;

	if (c == DL_CODEC_INT1)
		return mean_above(x, n, 0, 1);
	if (c == DL_CODEC_INT2) {
		cut = mean_above(x, n, 0, 1) * 0.75f;
		for (int i = 0; i < 3; i++) {
			scale = mean_above(x, n, cut, 0);
			cut = scale / 2;
		}
		return scale;
	}
	for (size_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(x[i]));
	return most / (c == DL_CODEC_INT8 ? 127 : c == DL_CODEC_INT4 ? 7 : 1);
}

/* The nearest BF16, none so small that it is not normal; by arithmetic: a step
 * is 2^-7 of the power of two below. */
static float scale_of(enum dl_codec c, const float *x, size_t n)
{
	float scale = best_scale(c, x, n);
	int e;

	if (scale <= 0)
		return 0;
	frexpf(scale, &e);
	scale = ldexpf(nearbyintf(ldexpf(scale, 8 - e)), e - 8);
	return scale < FLT_MIN ? 0 : scale;
}

static unsigned code_of(enum dl_codec c, float x, float scale)
{
	float y = scale > 0 ? x * (1 / scale) : 0, most = 0x1p-6f;
	unsigned sign = signbit(x) ? 8 : 0;

	switch (c) {
	case DL_CODEC_INT8:
		return (unsigned)(int)fmaxf(fminf(nearbyintf(y), 127), -127) &
		       255;
	case DL_CODEC_INT4:
		return (unsigned)(int)fmaxf(fminf(nearbyintf(y), 7), -7) & 15;
	case DL_CODEC_FP4:
		for (unsigned k = 7; k > 1; k--)
			if (fabsf(y) >= ldexpf(0.75f, (int)k - 7))
				return sign | k;
		return fabsf(y) > most / 2 ? sign | 1 : 0;
	case DL_CODEC_INT2:
		return fabsf(y) <= 0.5f ? 0 : sign ? 3 : 1;
	default:
		return scale > 0 && x < 0;
	}
}

static unsigned width_of(enum dl_codec c)
{
	return (unsigned)dl_codec_bytes(c, 8);
}

static void plain(const struct dl_quant *q, const float *x, size_t n,
	unsigned char *codes, unsigned char *scales)
{
	unsigned width = width_of(q->codec);

	memset(codes, 0, dl_codec_bytes(q->codec, n));
	for (size_t i = 0; i < n; i += q->block) {
		size_t part = n - i < q->block ? n - i : q->block;
		float scale = scale_of(q->codec, x + i, part);
		uint32_t bits;

		memcpy(&bits, &scale, sizeof bits);
		dl_put_le16(
			scales + 2 * (i / q->block), (uint16_t)(bits >> 16));
		for (size_t k = i; k < i + part; k++)
			codes[k * width / 8] |=
				(unsigned char)(code_of(q->codec, x[k], scale)
						<< k * width % 8);
	}
}

static int same(const struct dl_quant *q, const float *x, size_t n)
{
	static unsigned char codes[2][LONGEST + 1], scales[2][LONGEST / 8 + 3];
	size_t bytes = dl_codec_bytes(q->codec, n);
	size_t scale_bytes = 2 * dl_codec_scales(q->codec, q->block, n);

	codes[0][bytes] = codes[1][bytes] = 99;
	scales[0][scale_bytes] = scales[1][scale_bytes] = 99;
	plain(q, x, n, codes[0], scales[0]);
	dl_quant_encode(q, 0, 0, x, n, codes[1], scales[1]);
	return !memcmp(codes[0], codes[1], bytes + 1) &&
	       !memcmp(scales[0], scales[1], scale_bytes + 1);
}

/* Every length up to five blocks and some; of large blocks those about a
 * block's end, and some between. */
static void test_codec(enum dl_codec c, uint32_t block, const float *x)
{
	const struct dl_quant q = {.codec = c, .block = block};
	size_t tested = 0, right = 0;

	for (size_t n = 0; n < LONGEST && n < 5 * block + 20; n++)
		if (block <= 128 || n % block < 18 || n % block + 18 > block ||
			n % 97 == 0) {
			right += same(&q, x, n);
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
	/* Also zeros of both signs, and values that scales hardly reach. */
	for (size_t i = 0; i < LONGEST; i++)
		x[i] = (float)dl_rng_normal(&r) * (i % 7	  ? 1e-3f
							  : i % 3 ? 0
								  : 1e-9f);
	for (int c = DL_CODEC_INT8; c < DL_CODECS; c++)
		for (uint32_t b = DL_QUANT_BLOCK_MIN; b <= DL_QUANT_BLOCK_MAX;
			b *= 2)
			test_codec((enum dl_codec)c, b, x);
	return done_testing();
}
