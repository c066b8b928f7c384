#include "tensor/quant_kernels.h"

#include "tensor/quant_bits.h"

/* DL_QUANT_TABLE names the level's table. */

enum { LANES = 16, REFITS = 4 };

#define INLINE static inline __attribute__((always_inline))

/*
 * n codes, a byte each, of which the low bits count, into bytes: low bits
 * first. n is a multiple of 8.
 */
INLINE void pack_width(unsigned width, const unsigned char *restrict code,
	size_t n, unsigned char *restrict out)
{
	size_t bytes = n * width / 8;

	if (width == 8)
		memcpy(out, code, n);
#pragma omp simd
	for (size_t i = 0; i < (width == 4 ? bytes : 0); i++) {
		uint16_t v;

		memcpy(&v, code + 2 * i, sizeof v);
		out[i] = (unsigned char)((v & 15) | (v >> 4 & 0xf0));
	}
#pragma omp simd
	for (size_t i = 0; i < (width == 2 ? bytes : 0); i++) {
		uint32_t v;

		memcpy(&v, code + 4 * i, sizeof v);
		v &= 0x03030303;
		v |= v >> 6;
		out[i] = (unsigned char)((v & 15) | (v >> 12 & 0xf0));
	}
#pragma omp simd
	for (size_t i = 0; i < (width == 1 ? bytes : 0); i++) {
		uint64_t v;

		memcpy(&v, code + 8 * i, sizeof v);
		v &= UINT64_C(0x0101010101010101);
		v |= v >> 7;
		v |= v >> 14;
		out[i] = (unsigned char)((v & 15) | (v >> 28 & 0xf0));
	}
}

INLINE uint32_t largest(const float *x, size_t n)
{
	uint32_t most = 0;

#pragma omp simd reduction(max : most)
	for (size_t i = 0; i < n; i++) {
		uint32_t m = quant_magnitude(x[i]);

		most = m > most ? m : most;
	}
	return most;
}

/* The sum of those |x| that are above t, and how many they are. */
INLINE double sum_above(const float *x, size_t n, float t, uint32_t *above)
{
	double sum[LANES] = {0};
	uint32_t count[LANES] = {0};

	for (size_t i = 0; i < n; i += LANES)
#pragma omp simd
		for (int j = 0; j < LANES; j++) {
			float m = quant_float(quant_magnitude(x[i + j]));

			sum[j] += (double)(m > t ? m : 0);
			count[j] += m > t;
		}
	for (int half = LANES / 2; half; half /= 2)
		for (int j = 0; j < half; j++) {
			sum[j] += sum[j + half];
			count[j] += count[j + half];
		}
	*above = count[0];
	return sum[0];
}

INLINE float mean(const float *x, size_t n)
{
	uint32_t above;

	return (float)(sum_above(x, n, 0, &above) / (double)n);
}

/*
 * Codes -1, 0, 1: the scale that is best for given codes is the mean of what is
 * not 0, and the codes that are best for a given scale are cut at its half.
 * The two are taken in turn, which finds the least squares for a normal block
 * from a cut at 3/4 of the mean.
 */
INLINE float ternary(const float *x, size_t n)
{
	float cut = mean(x, n) * 0.75f, scale = 0;

	for (int i = 0; i < REFITS; i++) {
		uint32_t above;
		double sum = sum_above(x, n, cut, &above);

		scale = above ? (float)(sum / above) : 0;
		cut = scale / 2;
	}
	return scale;
}

/* The scale as bits of BF16: to nearest even, and 0 when it is too small for a
 * normal number. */
INLINE uint16_t fit(enum dl_codec c, const float *x, size_t n)
{
	float scale;
	uint32_t u;

	if (c == DL_CODEC_INT2)
		scale = ternary(x, n);
	else if (c == DL_CODEC_INT1)
		scale = mean(x, n);
	else
		scale = quant_float(largest(x, n)) / quant_top(c);
	u = quant_bits(scale);
	u = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	return u < 0x80 ? 0 : quant_limit(c, u);
}

/* To nearest even: adding 1.5 * 2^23 leaves the integer in the low bits. */
INLINE int nearest(float y, int top)
{
	int k = (int)(quant_bits(y + 0x1.8p23f) - quant_bits(0x1.8p23f));

	k = k > top ? top : k;
	return k < -top ? -top : k;
}

/* Half a step of the fraction added, the exponent tells the nearest power of
 * two; the least one reaches down to its half. */
INLINE int power(float y)
{
	uint32_t m = quant_magnitude(y);
	int k = (int)((m + 0x400000) >> 23) - 120;

	k = k > 7 ? 7 : k < 1 ? 1 : k;
	return m <= quant_bits(0x1p-7f) ? 0 : k | (y < 0 ? 8 : 0);
}

INLINE int code_of(enum dl_codec c, float x, float inverse)
{
	float y = x * inverse;

	switch (c) {
	case DL_CODEC_INT8:
		return nearest(y, 127);
	case DL_CODEC_INT4:
		return nearest(y, 7);
	case DL_CODEC_FP4:
		return power(y);
	case DL_CODEC_INT2:
		return (y > 0.5f) - (y < -0.5f);
	default:
		return (x < 0) & (inverse > 0);
	}
}

INLINE uint16_t encode(
	enum dl_codec c, const float *x, size_t n, unsigned char *out)
{
	unsigned char code[DL_QUANT_BLOCK_MAX];
	uint16_t scale = fit(c, x, n);
	float inverse = scale ? 1 / quant_scale(scale) : 0;
	size_t whole = (n + LANES - 1) / LANES * LANES;

#pragma omp simd
	for (size_t i = 0; i < whole; i++)
		code[i] = (unsigned char)code_of(c, x[i], inverse);
	pack_width(quant_width(c), code, whole, out);
	return scale;
}

INLINE float value_of(enum dl_codec c, unsigned code)
{
	switch (c) {
	case DL_CODEC_INT8:
		return (float)(signed char)code;
	case DL_CODEC_INT4:
		return (float)((int)((code & 15) ^ 8) - 8);
	case DL_CODEC_FP4:
		return code & 7 ? quant_float((code & 8) << 28 |
					      ((code & 7) + 120) << 23)
				: 0;
	case DL_CODEC_INT2:
		return (float)((int)((code & 3) ^ 2) - 2);
	default:
		return (float)(1 - 2 * (int)(code & 1));
	}
}

INLINE void decode(enum dl_codec c, const unsigned char *in, float scale,
	size_t n, float *out)
{
	const unsigned width = quant_width(c), per = 8 / width;

	for (size_t i = 0; i < n / per; i++)
		for (unsigned j = 0; j < per; j++)
			out[i * per + j] =
				value_of(c, in[i] >> j * width) * scale;
}

static void pack(enum dl_codec c, const unsigned char *code, size_t n,
	unsigned char *out)
{
	pack_width(quant_width(c), code, n, out);
}

#define CODEC(name, codec)                                                     \
	static uint16_t encode_##name(                                         \
		const float *x, size_t n, unsigned char *codes)                \
	{                                                                      \
		return encode(codec, x, n, codes);                             \
	}                                                                      \
	static void decode_##name(                                             \
		const unsigned char *codes, float scale, size_t n, float *out) \
	{                                                                      \
		decode(codec, codes, scale, n, out);                           \
	}
CODEC(int8, DL_CODEC_INT8)
CODEC(int4, DL_CODEC_INT4)
CODEC(fp4, DL_CODEC_FP4)
CODEC(int2, DL_CODEC_INT2)
CODEC(int1, DL_CODEC_INT1)

const struct dl_quant_kernels DL_QUANT_TABLE = {
	.pack = pack,
	.encode = {[DL_CODEC_INT8] = encode_int8,
		[DL_CODEC_INT4] = encode_int4,
		[DL_CODEC_FP4] = encode_fp4,
		[DL_CODEC_INT2] = encode_int2,
		[DL_CODEC_INT1] = encode_int1},
	.decode = {[DL_CODEC_INT8] = decode_int8,
		[DL_CODEC_INT4] = decode_int4,
		[DL_CODEC_FP4] = decode_fp4,
		[DL_CODEC_INT2] = decode_int2,
		[DL_CODEC_INT1] = decode_int1},
};
