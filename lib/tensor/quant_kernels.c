#include "tensor/quant_kernels.h"

#include "base/mem.h"
#include "tensor/quant_bits.h"
#include "tensor/quant_chance.h"
#include "tensor/quant_dot.h"
#include "tensor/quant_pick.h"
#include "tensor/wide.h"

/*
 * DL_QUANT_TABLE names the level's table. Most loops are plain and vectorized
 * by the compiler; sums need vectors as wide as this level's registers.
 */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"values are read and written as they lie in memory");
enum { LANES = 16, PARTS = LANES / WIDE, REFITS = 3 };
enum { FITS = 4 }; /* blocks whose scales are found at once */

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

/* Adds those |x| of 16 that are above what has the bits cut to lanes, and
 * returns how many they are. */
INLINE int add_above(wide sum[PARTS], const float *x, int32_t cut)
{
#if defined __AVX512F__
	__m512i m = _mm512_and_si512(
		_mm512_loadu_si512(x), _mm512_set1_epi32(0x7fffffff));
	__mmask16 is = _mm512_cmpgt_epi32_mask(m, _mm512_set1_epi32(cut));
	__m512 v = _mm512_castsi512_ps(m);

	sum[0] += (wide)_mm512_maskz_cvtps_pd(
		(__mmask8)is, _mm512_castps512_ps256(v));
	sum[1] += (wide)_mm512_maskz_cvtps_pd(
		(__mmask8)(is >> 8), _mm512_extractf32x8_ps(v, 1));
	return __builtin_popcount(is);
#elif defined __AVX2__
	int above = 0;

#pragma GCC unroll 2
	for (int k = 0; k < PARTS; k += 2) {
		__m256i m = _mm256_and_si256(
			_mm256_loadu_si256((const void *)(x + k * WIDE)),
			_mm256_set1_epi32(0x7fffffff));
		__m256i is = _mm256_cmpgt_epi32(m, _mm256_set1_epi32(cut));
		__m256 v = _mm256_castsi256_ps(_mm256_and_si256(m, is));

		sum[k] += (wide)_mm256_cvtps_pd(_mm256_castps256_ps128(v));
		sum[k + 1] += (wide)_mm256_cvtps_pd(
			_mm256_extractf128_ps(v, 1));
		above += __builtin_popcount((unsigned)_mm256_movemask_ps(
			_mm256_castsi256_ps(is)));
	}
	return above;
#else
	int above = 0;

#pragma GCC unroll 16
	for (int i = 0; i < LANES; i++) {
		uint32_t m = quant_magnitude(x[i]);
		uint32_t is = (int32_t)m > cut;

		sum[i / WIDE][i % WIDE] += (double)quant_float(m & -is);
		above += (int)is;
	}
	return above;
#endif
}

/* The sum of those |x| that are above t >= 0, and how many they are. */
INLINE double sum_above(const float *x, size_t n, float t, int *above)
{
	const int32_t cut = (int32_t)quant_bits(t);
	wide sum[PARTS];

#pragma GCC unroll 8
	for (int k = 0; k < PARTS; k++)
		sum[k] = (wide){0};
	*above = 0;
	for (size_t i = 0; i < n; i += LANES)
		*above += add_above(sum, x + i, cut);
	/* The later half of what is left is added to the earlier. */
#pragma GCC unroll 8
	for (int k = PARTS - 1; k > 0; k--)
		sum[k ^ (k >= 4 ? 4 : k >= 2 ? 2 : 1)] += sum[k];
	return total(sum[0]);
}

/* Of n values, after which there may be zeros up to a whole number of lanes. */
INLINE float mean(const float *x, size_t n)
{
	int above;

	return (float)(sum_above(x, n, 0, &above) / (double)n);
}

INLINE size_t part_of(size_t n, size_t block, size_t i)
{
	return n - i * block < block ? n - i * block : block;
}

/*
 * Codes -1, 0, 1: the scale that is best for given codes is the mean of what is
 * not 0, and the codes that are best for a given scale are cut at its half.
 * The two are taken in turn, which finds the least squares for a normal block
 * from a cut at 3/4 of the mean. Of several blocks: while one waits for its
 * sum, others are summed.
 */
INLINE void ternary(const float *x, size_t n, size_t block, float scale[FITS])
{
	float cut[FITS];

	for (size_t i = 0; i * block < n; i++)
		cut[i] = mean(x + i * block, part_of(n, block, i)) * 0.75f;
	for (int turn = 0; turn < REFITS; turn++)
		for (size_t i = 0; i * block < n; i++) {
			int above;
			double sum = sum_above(x + i * block,
				part_of(n, block, i), cut[i], &above);

			scale[i] = above ? (float)(sum / above) : 0;
			cut[i] = scale[i] / 2;
		}
}

/* The scale as bits of BF16: to nearest even, and 0 when it is too small for a
 * normal number. */
INLINE uint16_t rounded(enum dl_codec c, float scale)
{
	uint32_t u = quant_bits(scale);

	u = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	return u < 0x80 ? 0 : quant_limit(c, u);
}

/* Of up to FITS blocks. */
INLINE void fit(enum dl_codec c, const float *x, size_t n, size_t block,
	uint16_t scale[FITS])
{
	float best[FITS];

	if (c == DL_CODEC_INT2)
		ternary(x, n, block, best);
	for (size_t i = 0; i * block < n; i++) {
		const float *from = x + i * block;
		size_t part = part_of(n, block, i);

		if (c == DL_CODEC_INT1)
			best[i] = mean(from, part);
		else if (c != DL_CODEC_INT2)
			best[i] = quant_float(largest(from, part)) /
				  quant_top(c);
		scale[i] = rounded(c, best[i]);
	}
}

/* Half a step of the fraction added, the exponent tells the nearest power of
 * two; the least one reaches down to its half. */
INLINE uint32_t power(uint32_t m)
{
	int k = (int)((m + 0x400000) >> 23) - 120;

	k = k < 1 ? 1 : k;
	return m > quant_bits(0x1p-7f) ? (uint32_t)k : 0;
}

/*
 * The code of x, in the low bits. Adding 1.5 * 2^23 rounds to an integer, to
 * nearest even, and leaves it in two's complement there.
 */
INLINE uint32_t code_of(enum dl_codec c, float x, float inverse)
{
	uint32_t sign = quant_bits(x) >> 31, m;
	float y = x * inverse;
	int k = (int)(quant_bits(y + 0x1.8p23f) - quant_bits(0x1.8p23f));

	switch (c) {
	case DL_CODEC_INT8:
		k = k > 127 ? 127 : k;
		return (uint32_t)(k < -127 ? -127 : k);
	case DL_CODEC_INT4: /* beyond 7 only where the scale is limited */
		k = k > 7 ? 7 : k;
		return (uint32_t)(k < -7 ? -7 : k);
	case DL_CODEC_FP4:
		m = power(quant_magnitude(y));
		return m ? m | sign << 3 : 0;
	case DL_CODEC_INT2:
		m = quant_magnitude(y) > quant_bits(0.5f);
		return m | (m & sign) << 1;
	default:
		return sign & (quant_magnitude(x) != 0);
	}
}

/*
 * n codes, a byte each, of which the low bits count, into bytes: low bits
 * first. n is a multiple of 8.
 */
INLINE void pack(unsigned width, const unsigned char *restrict code, size_t n,
	unsigned char *restrict out)
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

INLINE void encode_block(enum dl_codec c, const float *x, size_t n,
	uint16_t scale, unsigned char *out)
{
	unsigned char code[DL_QUANT_BLOCK_MAX];
	float inverse = scale ? 1 / quant_scale(scale) : 0;
	size_t whole = (n + LANES - 1) / LANES * LANES;

#pragma omp simd
	for (size_t i = 0; i < whole; i++)
		code[i] = (unsigned char)code_of(c, x[i], inverse);
	if (c == DL_CODEC_INT1 && !scale)
		memset(code, 0, whole);
	pack(quant_width(c), code, whole, out);
}

INLINE void encode(enum dl_codec c, const float *x, size_t n, size_t block,
	unsigned char *out, unsigned char *scales)
{
	size_t step = block * quant_width(c) / 8;

	for (size_t i = 0; i < n; i += FITS * block) {
		size_t part = n - i < FITS * block ? n - i : FITS * block;
		uint16_t scale[FITS];

		fit(c, x + i, part, block, scale);
		for (size_t k = 0; k * block < part; k++) {
			encode_block(c, x + i + k * block,
				part_of(part, block, k), scale[k], out);
			dl_put_le16(scales, scale[k]);
			out += step;
			scales += 2;
		}
	}
}

/* A block, which may end inside a byte, by chance. */
INLINE uint16_t encode_by_chance(enum dl_codec c, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *out)
{
	unsigned char code[DL_QUANT_BLOCK_MAX], bytes[DL_QUANT_BLOCK_MAX];
	int32_t draws[DL_QUANT_BLOCK_MAX];
	uint16_t bits = scale_above(c, largest(x, n));
	float scale = quant_scale(bits);
	size_t whole = (n + 7) / 8 * 8;

	if (!bits) {
		memset(out, 0, dl_codec_bytes(c, n));
		return 0;
	}
	draw(key, at, n, draws);
#pragma omp simd
	for (size_t i = 0; i < n; i++)
		code[i] = (unsigned char)code_by_chance(
			c, x[i] / scale, uniform(draws[i]));
	memset(code + n, 0, whole - n);
	pack(quant_width(c), code, whole, bytes);
	memcpy(out, bytes, dl_codec_bytes(c, n));
	return bits;
}

/* The opposite of pack: n codes, a byte each. */
INLINE void unpack(unsigned width, const unsigned char *restrict in, size_t n,
	unsigned char *restrict code)
{
	size_t bytes = n * width / 8;

	if (width == 8)
		memcpy(code, in, n);
#pragma omp simd
	for (size_t i = 0; i < (width == 4 ? bytes : 0); i++) {
		uint16_t v = in[i];

		v = (uint16_t)((v | v << 4) & 0x0f0f);
		memcpy(code + 2 * i, &v, sizeof v);
	}
#pragma omp simd
	for (size_t i = 0; i < (width == 2 ? bytes : 0); i++) {
		uint32_t v = in[i];

		v = (v | v << 12) & 0x000f000f;
		v = (v | v << 6) & 0x03030303;
		memcpy(code + 4 * i, &v, sizeof v);
	}
#pragma omp simd
	for (size_t i = 0; i < (width == 1 ? bytes : 0); i++) {
		uint64_t v = in[i];

		v = (v | v << 28) & UINT64_C(0x0000000f0000000f);
		v = (v | v << 14) & UINT64_C(0x0003000300030003);
		v = (v | v << 7) & UINT64_C(0x0101010101010101);
		memcpy(code + 8 * i, &v, sizeof v);
	}
}

INLINE float value_of(enum dl_codec c, unsigned char code)
{
	uint32_t m = code & 7u;

	switch (c) {
	case DL_CODEC_INT8:
		return (float)(int)(signed char)code;
	case DL_CODEC_INT4:
		return (float)((int)(code ^ 8u) - 8);
	case DL_CODEC_FP4:
		return quant_float(m ? (code & 8u) << 28 | (m + 120) << 23 : 0);
	case DL_CODEC_INT2:
		return (float)((int)(code ^ 2u) - 2);
	default:
		return (float)(1 - 2 * (int)code);
	}
}

INLINE void decode_block(enum dl_codec c, const unsigned char *in, float scale,
	size_t n, float *out)
{
	unsigned char code[DL_QUANT_BLOCK_MAX];

	unpack(quant_width(c), in, n, code);
#pragma omp simd
	for (size_t i = 0; i < n; i++)
		out[i] = value_of(c, code[i]) * scale;
}

INLINE void decode(enum dl_codec c, const unsigned char *in,
	const unsigned char *scales, size_t n, size_t block, float *out)
{
	size_t step = block * quant_width(c) / 8;

	for (size_t i = 0; i < n; i += block) {
		for (size_t k = 0; k < step; k += 64)
			__builtin_prefetch(in + AHEAD + k);
		decode_block(c, in, quant_scale(dl_le16(scales)),
			n - i < block ? n - i : block, out + i);
		in += step;
		scales += 2;
	}
}

INLINE wide widen_bf16(const unsigned char *x)
{
#if defined __AVX512F__
	__m128i v = _mm_loadu_si128((const void *)x);

	return (wide)_mm512_cvtps_pd(_mm256_castsi256_ps(
		_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)));
#elif defined __AVX2__
	__m128i v = _mm_loadl_epi64((const void *)x);

	return (wide)_mm256_cvtps_pd(
		_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(v), 16)));
#else
	return (wide){(double)quant_scale(dl_le16(x)),
		(double)quant_scale(dl_le16(x + 2))};
#endif
}

/* Values from element i on. */
INLINE wide wide_at(enum dl_codec c, const unsigned char *x, size_t i)
{
	return c == DL_CODEC_BF16 ? widen_bf16(x + 2 * i) : widen(x + 4 * i);
}

INLINE double value_at(enum dl_codec c, const unsigned char *x, size_t i)
{
	return c == DL_CODEC_BF16 ? (double)quant_scale(dl_le16(x + 2 * i))
				  : (double)quant_float(dl_le32(x + 4 * i));
}

INLINE void add_plain(enum dl_codec codec, double *sum, int first,
	const double *c, const struct dl_codes *from, size_t m, size_t n,
	const struct dl_beside *beside)
{
	const size_t width = codec == DL_CODEC_BF16 ? 2 : 4;
	const wide none = -(wide){0};
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		wide v[PARTS];

#pragma GCC unroll 8
		for (int k = 0; k < PARTS; k++)
			v[k] = first ? none : load_wide(sum + i + k * WIDE);
		fetch(beside, i, LANES);
		for (size_t j = 0; j < m; j++) {
			const unsigned char *x = from[j].codes;

			__builtin_prefetch(x + i * width + AHEAD);
#pragma GCC unroll 8
			for (int k = 0; k < PARTS; k++)
				v[k] += c[j] * wide_at(codec, x, i + k * WIDE);
		}
#pragma GCC unroll 8
		for (int k = 0; k < PARTS; k++)
			store_wide(sum + i + k * WIDE, v[k]);
	}
	for (; i < n; i++) {
		sum[i] = first ? -0.0 : sum[i];
		for (size_t j = 0; j < m; j++)
			sum[i] += c[j] * value_at(codec, from[j].codes, i);
	}
}

static void add_f32(double *sum, int first, const double *c,
	const struct dl_codes *from, size_t m, size_t n,
	const struct dl_beside *beside)
{
	add_plain(DL_CODEC_F32, sum, first, c, from, m, n, beside);
}

static void add_bf16(double *sum, int first, const double *c,
	const struct dl_codes *from, size_t m, size_t n,
	const struct dl_beside *beside)
{
	add_plain(DL_CODEC_BF16, sum, first, c, from, m, n, beside);
}

/*
 * F16 and BF16, without branches: to nearest even; NaN stays NaN, made quiet,
 * with its high bits.
 */
INLINE uint32_t bf16_of(uint32_t u)
{
	uint32_t rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;

	return (u & 0x7fffffff) > 0x7f800000 ? u >> 16 | 0x40 : rounded;
}

/* A step of denormals, 2^-24, is one of floats from 0.5 on: adding that rounds,
 * and leaves the steps in the low bits. */
INLINE uint32_t f16_of(uint32_t u)
{
	uint32_t sign = u >> 16 & 0x8000, m = u & 0x7fffffff;
	uint32_t low = quant_bits(quant_float(m) + 0.5f) - quant_bits(0.5f);
	uint32_t h = (m + 0xfff + (m >> 13 & 1) - (112u << 23)) >> 13;

	h = m < 0x38800000 ? low : h;
	h = m >= 0x477ff000 ? 0x7c00 : h; /* 65520 and above */
	h = m > 0x7f800000 ? 0x7e00 | (m >> 13 & 0x1ff) : h;
	return sign | h;
}

INLINE uint32_t of_f16(uint32_t h)
{
	uint32_t sign = (h & 0x8000) << 16, m = h & 0x7fff;
	uint32_t low = quant_bits((float)(int)m * 0x1p-24f);
	uint32_t u = (m << 13) + ((m < 0x7c00 ? 112u : 224u) << 23);

	return sign | (m < 0x400 ? low : u);
}

INLINE uint32_t of_bf16(uint32_t h)
{
	return h << 16;
}

#define NARROW(name, bits_to, bits_from)                                       \
	static void to_##name(                                                 \
		unsigned char *restrict out, const float *x, size_t n)         \
	{                                                                      \
		_Pragma("omp simd") for (size_t i = 0; i < n; i++)             \
		{                                                              \
			uint16_t h = (uint16_t)bits_to(quant_bits(x[i]));      \
                                                                               \
			memcpy(out + 2 * i, &h, sizeof h);                     \
		}                                                              \
	}                                                                      \
	static void from_##name(                                               \
		float *restrict out, const unsigned char *in, size_t n)        \
	{                                                                      \
		_Pragma("omp simd") for (size_t i = 0; i < n; i++)             \
		{                                                              \
			uint16_t h;                                            \
                                                                               \
			memcpy(&h, in + 2 * i, sizeof h);                      \
			out[i] = quant_float(bits_from(h));                    \
		}                                                              \
	}
NARROW(f16, f16_of, of_f16)
NARROW(bf16, bf16_of, of_bf16)

INLINE uint32_t narrowed(enum dl_codec c, uint32_t u)
{
	return c == DL_CODEC_F16 ? f16_of(u) : bf16_of(u);
}

INLINE float widened(enum dl_codec c, uint32_t h)
{
	return quant_float(c == DL_CODEC_F16 ? of_f16(h) : of_bf16(h));
}

/* The nearest, or by chance the neighbour on the other side of x. */
INLINE uint16_t narrow_by_chance(enum dl_codec c, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *restrict out)
{
	int32_t draws[DL_QUANT_BLOCK_MAX];

	draw(key, at, n, draws);
#pragma omp simd
	for (size_t i = 0; i < n; i++) {
		uint32_t near = narrowed(c, quant_bits(x[i]));
		float v = widened(c, near);
		int more = quant_magnitude(v) < quant_magnitude(x[i]);
		uint32_t other = (near + (more ? 1u : -1u)) & 0xffff;
		float w = widened(c, other);
		uint16_t h = (uint16_t)(is_other(x[i], v, w, uniform(draws[i]))
						? other
						: near);

		memcpy(out + 2 * i, &h, sizeof h);
	}
	return 0;
}

#define CHANCE(name, codec, encode)                                            \
	static uint16_t chance_##name(uint64_t key, uint64_t at,               \
		const float *x, size_t n, unsigned char *codes)                \
	{                                                                      \
		return encode(codec, key, at, x, n, codes);                    \
	}
CHANCE(f16, DL_CODEC_F16, narrow_by_chance)
CHANCE(bf16, DL_CODEC_BF16, narrow_by_chance)
CHANCE(int8, DL_CODEC_INT8, encode_by_chance)
CHANCE(int4, DL_CODEC_INT4, encode_by_chance)
CHANCE(fp4, DL_CODEC_FP4, encode_by_chance)
CHANCE(int2, DL_CODEC_INT2, encode_by_chance)
CHANCE(int1, DL_CODEC_INT1, encode_by_chance)

#define CODEC(name, codec)                                                     \
	static void encode_##name(const float *x, size_t n, size_t block,      \
		unsigned char *codes, unsigned char *scales)                   \
	{                                                                      \
		encode(codec, x, n, block, codes, scales);                     \
	}                                                                      \
	static void decode_##name(const unsigned char *codes,                  \
		const unsigned char *scales, size_t n, size_t block,           \
		float *out)                                                    \
	{                                                                      \
		decode(codec, codes, scales, n, block, out);                   \
	}
CODEC(int8, DL_CODEC_INT8)
CODEC(int4, DL_CODEC_INT4)
CODEC(fp4, DL_CODEC_FP4)
CODEC(int2, DL_CODEC_INT2)
CODEC(int1, DL_CODEC_INT1)

const struct dl_quant_kernels DL_QUANT_TABLE = {
	.to_f16 = to_f16,
	.from_f16 = from_f16,
	.to_bf16 = to_bf16,
	.from_bf16 = from_bf16,
	.encode = {[DL_CODEC_INT8] = encode_int8,
		[DL_CODEC_INT4] = encode_int4,
		[DL_CODEC_FP4] = encode_fp4,
		[DL_CODEC_INT2] = encode_int2,
		[DL_CODEC_INT1] = encode_int1},
	.chance = {[DL_CODEC_F16] = chance_f16,
		[DL_CODEC_BF16] = chance_bf16,
		[DL_CODEC_INT8] = chance_int8,
		[DL_CODEC_INT4] = chance_int4,
		[DL_CODEC_FP4] = chance_fp4,
		[DL_CODEC_INT2] = chance_int2,
		[DL_CODEC_INT1] = chance_int1},
	.decode = {[DL_CODEC_INT8] = decode_int8,
		[DL_CODEC_INT4] = decode_int4,
		[DL_CODEC_FP4] = decode_fp4,
		[DL_CODEC_INT2] = decode_int2,
		[DL_CODEC_INT1] = decode_int1},
	.dot_int4 = dot_int4,
#if defined __AVX2__
	.gram_int4 = gram_int4,
#endif
	.add =
		{
			[DL_CODEC_F32] = add_f32,
			[DL_CODEC_BF16] = add_bf16,
#if defined __AVX2__
			[DL_CODEC_INT4] = add_int4,
#endif
		},
};
