/*
 * Rounding by chance: up or down so that the mean over the draws is the value.
 * Draw i of a tensor is a function of (key, i) alone. Private to quantisation.
 */
#ifndef DL_TENSOR_QUANT_RANDOM_H
#define DL_TENSOR_QUANT_RANDOM_H

#include "tensor/quant.h"

/* The codes of one block of a scaled codec, n values from element at of its
 * tensor on; returns the scale as bits of BF16, large enough for all. */
uint16_t quant_random(enum dl_codec c, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *codes);

/* n values as F16 or BF16. */
void quant_random_narrow(enum dl_dtype t, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *out);

#endif
