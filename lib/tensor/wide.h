/*
 * Vectors as wide as the registers of the level that a source is compiled for,
 * written with the compilers' vector types: a wider level does the same
 * operations on the same lanes with fewer instructions.
 */
#ifndef DL_TENSOR_WIDE_H
#define DL_TENSOR_WIDE_H

#include <stdint.h>
#include <string.h>
#if defined __AVX2__
#include <immintrin.h>
#endif

#if defined __AVX512F__
enum { WIDE = 8 };
#elif defined __AVX2__
enum { WIDE = 4 };
#else
enum { WIDE = 2 };
#endif

/* Out of line, a constant would be none. */
#define INLINE static inline __attribute__((always_inline))

typedef double wide __attribute__((vector_size(WIDE * sizeof(double))));
typedef float half __attribute__((vector_size(WIDE * sizeof(float))));

/* One by one: a copy of several at once would go through memory. */
INLINE wide load_wide(const double *x)
{
	wide v;

	memcpy(&v, x, sizeof v);
	return v;
}

INLINE void store_wide(double *x, wide v)
{
	memcpy(x, &v, sizeof v);
}

/* Of f32, at any alignment. */
INLINE wide widen(const void *x)
{
	half v;

	memcpy(&v, x, sizeof v);
	/* gcc 12 would convert halves of the register. */
#if defined __AVX512F__
	return (wide)_mm512_cvtps_pd((__m256)v);
#elif defined __AVX2__
	return (wide)_mm256_cvtps_pd((__m128)v);
#else
	return __builtin_convertvector(v, wide);
#endif
}

/* Halves are added until one lane is left. */
INLINE double total(wide v)
{
#if defined __AVX2__
#if defined __AVX512F__
	__m256d w = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)v),
		_mm512_extractf64x4_pd((__m512d)v, 1));
#else
	__m256d w = (__m256d)v;
#endif
	__m128d x = _mm_add_pd(
		_mm256_castpd256_pd128(w), _mm256_extractf128_pd(w, 1));

	return x[0] + x[1];
#else
	return v[0] + v[1];
#endif
}

#endif
