/*
 * Inner products of int4 codes, exact in whole numbers a block. Private to the
 * kernels of quantisation.
 */
#ifndef DL_TENSOR_QUANT_DOT_H
#define DL_TENSOR_QUANT_DOT_H

#include "tensor/quant_bits.h"
#include "tensor/quant_kernels.h"
#include "tensor/quant_pick.h"
#include "tensor/wide.h"

INLINE int32_t dot_bytes(
	const unsigned char *x, const unsigned char *y, size_t bytes)
{
	int32_t sum = 0;

#pragma omp simd reduction(+ : sum)
	for (size_t i = 0; i < bytes; i++)
		sum += number_of(x[i] & 15u) * number_of(y[i] & 15u) +
		       number_of(x[i] >> 4) * number_of(y[i] >> 4);
	return sum;
}

#if defined __AVX2__
/* With a = x + 8, as unsigned bytes, xy is ay - 8y. */
INLINE __m256i dot_word(const unsigned char *x, const unsigned char *y)
{
	const __m256i low = _mm256_set1_epi8(15), eight = _mm256_set1_epi8(8);
	__m256i a = _mm256_loadu_si256((const void *)x);
	__m256i b = _mm256_loadu_si256((const void *)y);
	__m256i a0 = _mm256_xor_si256(_mm256_and_si256(a, low), eight);
	__m256i b0 = _mm256_xor_si256(_mm256_and_si256(b, low), eight);

	a = _mm256_and_si256(_mm256_srli_epi16(a, 4), low);
	b = _mm256_and_si256(_mm256_srli_epi16(b, 4), low);
	a = _mm256_xor_si256(a, eight);
	b = _mm256_sub_epi8(_mm256_xor_si256(b, eight), eight);
	b0 = _mm256_sub_epi8(b0, eight);
	a = _mm256_add_epi16(
		_mm256_maddubs_epi16(a, b), _mm256_maddubs_epi16(a0, b0));
	return _mm256_sub_epi16(
		a, _mm256_maddubs_epi16(eight, _mm256_add_epi8(b, b0)));
}

INLINE int32_t dot_codes(
	const unsigned char *x, const unsigned char *y, size_t bytes)
{
	const size_t word = sizeof(__m256i), whole = bytes / word * word;
	__m256i sum = _mm256_setzero_si256();
	__m128i v;

	for (size_t i = 0; i < whole; i += word)
		sum = _mm256_add_epi16(sum, dot_word(x + i, y + i));
	sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
	v = _mm_add_epi32(
		_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
	v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0x4e));
	v = _mm_add_epi32(v, _mm_shuffle_epi32(v, 0xb1));
	return _mm_cvtsi128_si32(v) +
	       (whole == bytes ? 0
			       : dot_bytes(
					 x + whole, y + whole, bytes - whole));
}
#else
INLINE int32_t dot_codes(
	const unsigned char *x, const unsigned char *y, size_t bytes)
{
	return dot_bytes(x, y, bytes);
}
#endif

/* At most 2^16 times two scales of 8 bits: exact, a block. */
static double dot_int4(
	const struct dl_codes *x, const struct dl_codes *y, size_t n)
{
	const unsigned char *a = x->codes, *b = y->codes;
	const unsigned char *s = x->scales, *t = y->scales;
	size_t bytes = n / 2, block = x->block / 2;
	double sum = 0;

	for (size_t i = 0; i < bytes; i += block, s += 2, t += 2) {
		size_t part = bytes - i < block ? bytes - i : block;

		sum += (double)dot_codes(a + i, b + i, part) *
		       ((double)quant_scale(dl_le16(s)) *
			       (double)quant_scale(dl_le16(t)));
	}
	return sum;
}

#if defined __AVX2__
/* A register of bytes, or of 16-bit sums. */
#if defined __AVX512BW__
typedef __m512i word;

/* The sums of neighbours' products, added to sum. */
INLINE word add_products(word sum, word u, word s)
{
	return _mm512_add_epi16(sum, _mm512_maddubs_epi16(u, s));
}

/* Sums of blocks have room for as many again. */
INLINE __m256i halved(word sum)
{
	return _mm256_add_epi16(
		_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
}
#else
typedef __m256i word;

/* The sums of neighbours' products, added to sum. */
INLINE word add_products(word sum, word u, word s)
{
	return _mm256_add_epi16(sum, _mm256_maddubs_epi16(u, s));
}

INLINE __m256i halved(word sum)
{
	return sum;
}
#endif

enum { WORD = sizeof(word) };
typedef unsigned char byte_word __attribute__((vector_size(WORD)));

INLINE word load_word(const unsigned char *x)
{
	word v;

	memcpy(&v, x, sizeof v);
	return v;
}

/* Of the low halves of bytes, and then of the high ones: what is 8 above them,
 * and they. */
INLINE void unpack_word(
	const unsigned char *x, unsigned char *u, unsigned char *s)
{
	byte_word v, both[2];

	memcpy(&v, x, sizeof v);
	both[0] = (v & 15) ^ 8;
	both[1] = (v >> 4) ^ 8;
	memcpy(u, both, sizeof both);
	both[0] -= 8;
	both[1] -= 8;
	memcpy(s, both, sizeof both);
}

INLINE __m256i pair_totals(word sum)
{
	return _mm256_madd_epi16(halved(sum), _mm256_set1_epi16(1));
}

/* The four sums of 16-bit lanes. */
INLINE __m128i four_totals(const word *sum)
{
	__m256i a = pair_totals(sum[0]), b = pair_totals(sum[1]),
		c = pair_totals(sum[2]), d = pair_totals(sum[3]);

	a = _mm256_add_epi32(
		_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
	c = _mm256_add_epi32(
		_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
	a = _mm256_add_epi32(
		_mm256_unpacklo_epi64(a, c), _mm256_unpackhi_epi64(a, c));
	return _mm_add_epi32(
		_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
}

/* A block's codes of all, unpacked: of each what is 8 above it, and it. What is
 * beyond the m up to a multiple of FOUR is 0. */
enum { FOUR = 4 };
struct unpacked {
	unsigned char u[DL_QUANT_MANY][DL_QUANT_BLOCK_MAX];
	unsigned char s[DL_QUANT_MANY][DL_QUANT_BLOCK_MAX];
	double scale[DL_QUANT_MANY];
};

INLINE void unpack_block(struct unpacked *b, const struct dl_codes *x, size_t m,
	size_t block, size_t i)
{
	size_t bytes = block / 2;

	for (size_t j = 0; j < m; j++) {
		const unsigned char *codes = x[j].codes, *scale = x[j].scales;

		for (size_t k = 0; k < bytes; k += WORD)
			unpack_word(codes + i * bytes + k, b->u[j] + 2 * k,
				b->s[j] + 2 * k);
		b->scale[j] = (double)quant_scale(dl_le16(scale + 2 * i));
	}
}

/* Of x's codes and those of the four from y on; with x NULL of as many 8s. */
INLINE __m128i four_products(const struct unpacked *b, const unsigned char *x,
	size_t y, size_t block)
{
	word sum[FOUR] = {{0}}, u;

	memset(&u, 8, sizeof u);
	for (size_t k = 0; k < block; k += WORD) {
		if (x)
			u = load_word(x + k);
#pragma GCC unroll 4
		for (int i = 0; i < FOUR; i++)
			sum[i] = add_products(
				sum[i], u, load_word(b->s[y + (size_t)i] + k));
	}
	return four_totals(sum);
}

/* sum[x][y] of all m, by fours of y. With u = x + 8, xy is uy - 8y. */
INLINE void add_pairs(double (*sum)[DL_QUANT_MANY], const struct unpacked *b,
	size_t m, size_t block)
{
	for (size_t y = 0; y < m; y += FOUR) {
		__m128i eights = four_products(b, NULL, y, block);
		__m256d scale = _mm256_loadu_pd(b->scale + y);

		for (size_t x = 0; x < m && x < y + FOUR; x++) {
			__m128i v = _mm_sub_epi32(
				four_products(b, b->u[x], y, block), eights);
			__m256d by = _mm256_mul_pd(
				scale, _mm256_set1_pd(b->scale[x]));

			_mm256_storeu_pd(sum[x] + y,
				_mm256_add_pd(_mm256_loadu_pd(sum[x] + y),
					_mm256_mul_pd(
						_mm256_cvtepi32_pd(v), by)));
		}
	}
}

static void gram_int4(const struct dl_codes *x, size_t m, size_t n, double *sum)
{
	double all[DL_QUANT_MANY][DL_QUANT_MANY] = {{0}};
	struct unpacked b;
	size_t block = x->block;

	for (size_t j = m; j < DL_QUANT_MANY; j++) {
		memset(b.s[j], 0, block);
		b.scale[j] = 0;
	}
	for (size_t i = 0; i < n / block; i++) {
		unpack_block(&b, x, m, block, i);
		add_pairs(all, &b, m, block);
	}
	for (size_t i = 0; i < m; i++)
		for (size_t j = i; j < m; j++)
			*sum++ = all[i][j];
}
#endif

#endif
