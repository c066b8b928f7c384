/*
 * Rounding by chance: up or down so that the mean over the draws is the value.
 * Draw i of a tensor is a function of (key, i) alone. Private to the kernels of
 * quantisation.
 */
#ifndef DL_TENSOR_QUANT_CHANCE_H
#define DL_TENSOR_QUANT_CHANCE_H

#include "base/rng.h"
#include "tensor/quant_bits.h"
#include "tensor/wide.h"

/* Of n elements from the even i on, n <= DL_QUANT_BLOCK_MAX: 24 bits of each
 * half of 64. */
INLINE void draw(uint64_t key, uint64_t i, size_t n, int32_t *draws)
{
#pragma omp simd
	for (size_t k = 0; k < (n + 1) / 2; k++) {
		uint64_t two = dl_rng_at(key, i / 2 + k) >> 8 &
			       UINT64_C(0x00ffffff00ffffff);

		memcpy(draws + 2 * k, &two, sizeof two);
	}
}

/* [0, 1) */
INLINE float uniform(int32_t draw)
{
	return (float)draw * 0x1p-24f;
}

/* The scale that makes no value larger than the largest code. */
INLINE uint16_t scale_above(enum dl_codec c, uint32_t most)
{
	float least = quant_float(most) / quant_top(c);
	uint32_t u = (quant_bits(least) + 0xffff) >> 16;

	return most ? quant_limit(c, u < 0x80 ? 0x80 : u) : 0;
}

INLINE int integer_by_chance(float y, int top, float u)
{
	int low = (int)y - (y < (float)(int)y);
	int k = low + (y - (float)low > u);

	return k > top ? top : k < -top ? -top : k;
}

/* Between powers of two, and between 0 and the least. */
INLINE int power_by_chance(float y, float u)
{
	const uint32_t least = quant_bits(0x1p-6f);
	uint32_t m = quant_magnitude(y), sign = quant_bits(y) >> 31;
	uint32_t low = m < least ? 0 : m & 0x7f800000;
	uint32_t step = low > least ? low : least;
	float above = quant_float(m) - quant_float(low);
	int k = (int)(step >> 23) - 121 + (low != 0);

	k += above > u * quant_float(step);
	k = k > 7 ? 7 : k;
	return k ? k | (int)sign << 3 : 0;
}

INLINE int code_by_chance(enum dl_codec c, float y, float u)
{
	switch (c) {
	case DL_CODEC_INT8:
		return integer_by_chance(y, 127, u);
	case DL_CODEC_INT4:
		return integer_by_chance(y, 7, u);
	case DL_CODEC_FP4:
		return power_by_chance(y, u);
	case DL_CODEC_INT2:
		return integer_by_chance(y, 1, u);
	default:
		return !(0.5f + y / 2 > u);
	}
}

/* Is x rounded to w, on its other side than the nearest, v? Not when one of
 * them is no number. */
INLINE int is_other(float x, float v, float w, float u)
{
	double from = (double)v;

	return ((double)x - from) / ((double)w - from) > (double)u;
}

#endif
