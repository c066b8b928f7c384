/*
 * What rounding to nearest and by chance share. Private to quantisation.
 */
#ifndef DL_TENSOR_QUANT_BITS_H
#define DL_TENSOR_QUANT_BITS_H

#include <float.h>
#include <string.h>

#include "tensor/quant.h"

static inline uint32_t quant_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, sizeof u);
	return u;
}

static inline float quant_float(uint32_t u)
{
	float x;

	memcpy(&x, &u, sizeof x);
	return x;
}

/* The bits of |x|: they compare as the values do. */
static inline uint32_t quant_magnitude(float x)
{
	return quant_bits(x) & 0x7fffffff;
}

static inline float quant_scale(uint16_t bf16)
{
	return quant_float((uint32_t)bf16 << 16);
}

/* What a code multiplies the scale by, at most. */
static inline float quant_top(enum dl_codec c)
{
	return c == DL_CODEC_INT8 ? 127 : c == DL_CODEC_INT4 ? 7 : 1;
}

static inline unsigned quant_width(enum dl_codec c)
{
	return c == DL_CODEC_INT8   ? 8
	       : c == DL_CODEC_INT2 ? 2
	       : c == DL_CODEC_INT1 ? 1
				    : 4;
}

/* A scale is not so large that any code, also those that no encoder uses, would
 * make an infinite value of it. */
static inline uint16_t quant_limit(enum dl_codec c, uint32_t bf16)
{
	float most = c == DL_CODEC_INT8	  ? 128
		     : c == DL_CODEC_INT4 ? 8
		     : c == DL_CODEC_INT2 ? 2
					  : 1;
	uint32_t limit = quant_bits(FLT_MAX / most) >> 16;

	return (uint16_t)(bf16 < limit ? bf16 : limit);
}

#endif
