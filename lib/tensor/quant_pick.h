/*
 * Codes of four bits, added to sums from where they lie: what each stands for
 * is picked, or made, in registers. Private to the kernels of quantisation, of
 * the levels where that is faster than to decode and to add.
 */
#ifndef DL_TENSOR_QUANT_PICK_H
#define DL_TENSOR_QUANT_PICK_H

#include "base/mem.h"
#include "tensor/quant_bits.h"
#include "tensor/wide.h"

/* Bytes: codes are fetched before they are wanted, since who reads many pushes
 * at once reads too little of each for the CPU to see them coming. */
enum { AHEAD = 2048 };

/* Fetches what is beside n sums from the i-th on. */
INLINE void fetch(const struct dl_beside *beside, size_t i, size_t n)
{
	enum { LINE = 64 / sizeof(float) };

	for (size_t k = i; beside && k < i + n; k += LINE) {
		__builtin_prefetch((const char *)(beside->x + k) + AHEAD);
		__builtin_prefetch((const char *)(beside->y + k) + AHEAD);
	}
}

/* What a code of four bits stands for when the scale is 1. */
INLINE int16_t number_of(unsigned code)
{
	return (int16_t)((int)(code ^ 8) - 8);
}

#if defined __AVX512F__
enum { SPAN = 128 }; /* elements whose sums registers hold */

/* The products of c and what 16 codes stand for at that scale. */
INLINE void products(double c, float scale, __m512d *plus, __m512d *minus)
{
	const __m512 code = _mm512_setr_ps(
		0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
	__m512 value = _mm512_mul_ps(code, _mm512_set1_ps(scale));
	__m512d by = _mm512_set1_pd(c);

	*plus = _mm512_mul_pd(
		_mm512_cvtps_pd(_mm512_castps512_ps256(value)), by);
	*minus = _mm512_mul_pd(
		_mm512_cvtps_pd(_mm512_extractf32x8_ps(value, 1)), by);
}

/*
 * Codes of four bits have one of 16 products, which two registers hold and a
 * code picks from. n elements from element i on, 16 or SPAN, which lie in one
 * block.
 */
INLINE void pick_int4(double *sum, int first, const double *c,
	const struct dl_codes *from, size_t m, size_t i, size_t n,
	const struct dl_beside *beside)
{
	const __m512i low = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
	const __m512i high = _mm512_setr_epi64(32, 36, 40, 44, 48, 52, 56, 60);
	const size_t scale = 2 * (i / from->block), parts = n / WIDE;
	__m512d v[SPAN / WIDE], plus, minus;

#pragma GCC unroll 16
	for (size_t k = 0; k < parts; k++)
		v[k] = first ? _mm512_set1_pd(-0.0)
			     : _mm512_loadu_pd(sum + i + k * WIDE);
	fetch(beside, i, n);
	for (size_t j = 0; j < m; j++) {
		const unsigned char *x = from[j].codes, *s = from[j].scales;

		x += i / 2;
		__builtin_prefetch(x + AHEAD);
		products(c[j], quant_scale(dl_le16(s + scale)), &plus, &minus);
#pragma GCC unroll 16
		for (size_t k = 0; k < parts; k++) {
			__m512i code = _mm512_set1_epi64(
				(int64_t)dl_le64(x + k / 2 * 8));

			code = _mm512_srlv_epi64(code, k % 2 ? high : low);
			v[k] = _mm512_add_pd(v[k],
				_mm512_permutex2var_pd(plus, code, minus));
		}
	}
#pragma GCC unroll 16
	for (size_t k = 0; k < parts; k++)
		_mm512_storeu_pd(sum + i + k * WIDE, v[k]);
}

static void add_int4(double *sum, int first, const double *c,
	const struct dl_codes *from, size_t m, size_t n,
	const struct dl_beside *beside)
{
	size_t i = 0;

	for (; from->block >= SPAN && i + SPAN <= n; i += SPAN)
		pick_int4(sum, first, c, from, m, i, SPAN, beside);
	for (; i < n; i += 2 * WIDE)
		pick_int4(sum, first, c, from, m, i, 2 * WIDE, beside);
}

#elif defined __AVX2__
enum { SPAN = 32, MANY = 16 };

typedef uint64_t lanes __attribute__((vector_size(sizeof(wide))));

/*
 * A code's four bits, anywhere in the fraction of a double, are a number when
 * the exponent is such that the lowest of them counts 1: code ^ 8 is then above
 * the exponent's power of two by 8 more than the code stands for. A word of 8
 * codes, twice in a double, has codes 0 to 3 at EARLY and 4 to 7 at LATE, one a
 * lane. There, a number times a scale has no more bits than a double holds.
 */
#define EARLY ((lanes){32, 36, 40, 44})
#define LATE ((lanes){16, 20, 24, 28})

/* The number of code 0: the power and 8. */
INLINE wide zero_at(lanes at)
{
	return (wide)((52 + 1023 - at) << 52 | (lanes){8, 8, 8, 8} << at);
}

INLINE wide number_at(__m256i word, lanes at)
{
	const lanes code = (lanes){15, 15, 15, 15} << at;

	return (wide)(((lanes)word & code) ^ (lanes)zero_at(at));
}

/* A delta's block: its scale, and that times what zeros are. */
struct scaled {
	const unsigned char *codes;
	double c;
	wide scale, early, late;
};

INLINE wide add_four(wide sum, const struct scaled *x, wide number, wide zero)
{
	__m256d value = _mm256_fmsub_pd(
		(__m256d)number, (__m256d)x->scale, (__m256d)zero);

	return sum + x->c * (wide)value;
}

/* n elements from element i on, 16 or SPAN. */
INLINE void add_span(double *sum, int first, const struct scaled *from,
	size_t m, size_t i, size_t n, const struct dl_beside *beside)
{
	const size_t words = n / 8;
	wide v[SPAN / WIDE];

#pragma GCC unroll 8
	for (size_t k = 0; k < 2 * words; k++)
		v[k] = first ? -(wide){0} : load_wide(sum + i + k * WIDE);
	fetch(beside, i, n);
	for (const struct scaled *x = from; x < from + m; x++)
#pragma GCC unroll 4
		for (size_t k = 0; k < words; k++) {
			__m256i word = _mm256_set1_epi32(
				(int32_t)dl_le32(x->codes + i / 2 + 4 * k));

			v[2 * k] = add_four(
				v[2 * k], x, number_at(word, EARLY), x->early);
			v[2 * k + 1] = add_four(v[2 * k + 1], x,
				number_at(word, LATE), x->late);
		}
#pragma GCC unroll 8
	for (size_t k = 0; k < 2 * words; k++)
		store_wide(sum + i + k * WIDE, v[k]);
}

/* Does no code make an infinite value, or -0, of that scale? */
INLINE int is_usual(uint16_t scale, const unsigned char *codes, size_t bytes)
{
	unsigned char any = 0;

	if (scale)
		return scale == quant_limit(DL_CODEC_INT4, scale);
	for (size_t i = 0; i < bytes; i++)
		any |= codes[i];
	return !any;
}

INLINE void add_each(double *sum, const double *c, const struct dl_codes *from,
	size_t m, size_t i, size_t n)
{
	for (size_t j = 0; j < m; j++) {
		const unsigned char *x = from[j].codes, *s = from[j].scales;
		float scale = quant_scale(dl_le16(s + 2 * (i / from->block)));

		for (size_t k = i; k < i + n; k++) {
			int code = number_of(x[k / 2] >> k % 2 * 4 & 15);

			sum[k] += c[j] * (double)((float)code * scale);
		}
	}
}

/* Their blocks of n elements from element i on; 0 when one is not usual. */
INLINE int scale_all(struct scaled *to, const double *c,
	const struct dl_codes *from, size_t m, size_t i, size_t n)
{
	int usual = 1;

	for (size_t j = 0; j < m; j++) {
		const unsigned char *x = from[j].codes, *s = from[j].scales;
		uint16_t bits = dl_le16(s + 2 * (i / from->block));
		wide scale = (wide)_mm256_set1_pd((double)quant_scale(bits));

		to[j] = (struct scaled){x, c[j], scale, scale * zero_at(EARLY),
			scale * zero_at(LATE)};
		for (size_t at = i / 2; at < (i + n) / 2; at += 64)
			__builtin_prefetch(x + at + AHEAD);
		usual &= is_usual(bits, x + i / 2, n / 2);
	}
	return usual;
}

/* One block of up to MANY. */
INLINE void add_block(double *sum, int first, const double *c,
	const struct dl_codes *from, size_t m, size_t i, size_t n,
	const struct dl_beside *beside)
{
	struct scaled scaled[MANY];
	size_t at = i;

	if (!scale_all(scaled, c, from, m, i, n)) {
		for (; first && at < i + n; at++)
			sum[at] = -0.0;
		add_each(sum, c, from, m, i, n);
		return;
	}
	for (; at + SPAN <= i + n; at += SPAN)
		add_span(sum, first, scaled, m, at, SPAN, beside);
	if (at < i + n)
		add_span(sum, first, scaled, m, at, SPAN / 2, beside);
}

static void add_int4(double *sum, int first, const double *c,
	const struct dl_codes *from, size_t m, size_t n,
	const struct dl_beside *beside)
{
	for (size_t i = 0; i < n; i += from->block)
		for (size_t j = 0; j < m; j += MANY)
			add_block(sum, first && !j, c + j, from + j,
				m - j < MANY ? m - j : MANY, i,
				n - i < from->block ? n - i : from->block,
				beside);
}
#endif

#endif
