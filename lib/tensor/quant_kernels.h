/*
 * The inner loops of quantisation and of conversion, compiled once a CPU level
 * from quant_kernels.c. Sums run in 16 lanes that are added in a fixed order,
 * all else is value by value, so every level gives the same bits.
 */
#ifndef DL_TENSOR_QUANT_KERNELS_H
#define DL_TENSOR_QUANT_KERNELS_H

#include "tensor/quant.h"

enum { DL_QUANT_WHOLE = 128 };

struct dl_quant_kernels {
	/* n values as F16 and BF16, at any alignment. */
	void (*to_f16)(unsigned char *out, const float *x, size_t n);
	void (*from_f16)(float *out, const unsigned char *in, size_t n);
	void (*to_bf16)(unsigned char *out, const float *x, size_t n);
	void (*from_bf16)(float *out, const unsigned char *in, size_t n);
	/* Of scaled codecs only: n values in blocks, rounded to nearest, their
	 * codes and scales. When n is no multiple of 16, zeros follow x and
	 * codes have room up to the next. */
	void (*encode[DL_CODECS])(const float *x, size_t n, size_t block,
		unsigned char *codes, unsigned char *scales);
	/* Of all codecs but f32, by chance: one block, from the even element at
	 * of its tensor on; of F16 and BF16 up to DL_QUANT_BLOCK_MAX values.
	 * Returns the scale, or 0. */
	uint16_t (*chance[DL_CODECS])(uint64_t key, uint64_t at, const float *x,
		size_t n, unsigned char *codes);
	/* The opposite of encode; n is a multiple of 16. */
	void (*decode[DL_CODECS])(const unsigned char *codes,
		const unsigned char *scales, size_t n, size_t block,
		float *out);
	/* The inner product, see dl_quant_dot; n is a multiple of 16. */
	double (*dot_int4)(
		const struct dl_codes *x, const struct dl_codes *y, size_t n);
	/* dl_quant_gram, of whole blocks of a multiple of DL_QUANT_WHOLE
	 * values, with scales that are bounded; NULL where dot_int4 is as
	 * fast. */
	void (*gram_int4)(
		const struct dl_codes *x, size_t m, size_t n, double *sum);
	/* dl_quant_add; of scaled codecs n is a multiple of 16. NULL where f32
	 * are as fast, decoded before. */
	void (*add[DL_CODECS])(double *sum, int first, const double *c,
		const struct dl_codes *from, size_t m, size_t n,
		const struct dl_beside *beside);
};

/* The table for this CPU. */
const struct dl_quant_kernels *dl_quant_kernels(void);

extern const struct dl_quant_kernels dl_quant_kernels_baseline;
extern const struct dl_quant_kernels dl_quant_kernels_avx2;
extern const struct dl_quant_kernels dl_quant_kernels_avx512;

#endif
