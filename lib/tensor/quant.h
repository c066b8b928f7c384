/*
 * Codecs: values as fewer bits (dl-fragment(5), "Encoded tensors").
 *
 * f16 and bf16 are other types of element. int8, int4, fp4, int2 and int1 are
 * codes of 8, 4, 4, 2 and 1 bits, with one scale in BF16 for each block of
 * values: value = code * scale, which is exact in f32. The same values give the
 * same bytes on every CPU, whatever the number of threads.
 */
#ifndef DL_TENSOR_QUANT_H
#define DL_TENSOR_QUANT_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/dtype.h"

enum dl_codec {
	DL_CODEC_F32,
	DL_CODEC_F16,
	DL_CODEC_BF16,
	DL_CODEC_INT8,
	DL_CODEC_INT4,
	DL_CODEC_FP4,
	DL_CODEC_INT2,
	DL_CODEC_INT1,
	DL_CODECS
};

const char *dl_codec_name(enum dl_codec c);	       /* "int4" */
int dl_codec_parse(const char *s, enum dl_codec *out); /* -1: names none */
int dl_codec_is_scaled(enum dl_codec c);	       /* codes with scales */
enum dl_dtype dl_codec_dtype(enum dl_codec c);	       /* U8 when scaled */

/* Values that share a scale: a power of two from MIN to MAX. */
enum {
	DL_QUANT_BLOCK = 128, /* unless told otherwise */
	DL_QUANT_BLOCK_MIN = 16,
	DL_QUANT_BLOCK_MAX = 1024
};
int dl_quant_block_valid(uint64_t block);

/* So many at most are multiplied at once. */
enum { DL_QUANT_MANY = 16 };

/* Bytes of n values without their scales, and how many scales they have. */
uint64_t dl_codec_bytes(enum dl_codec c, uint64_t n);
uint64_t dl_codec_scales(enum dl_codec c, uint32_t block, uint64_t n);

struct dl_quant {
	enum dl_codec codec;
	uint32_t block;
	int stochastic; /* round up or down by chance, right on average */
	uint64_t seed;	/* of that chance */
};

/* The key of the draws for the tensor of that name. */
uint64_t dl_quant_key(const struct dl_quant *q, const char *name, size_t n);

/*
 * Encodes n finite values; the first is element at of its tensor, a multiple of
 * the block. codes gets dl_codec_bytes; scales 2 bytes a block, unused unless
 * the codec is scaled. A run may end inside a block only where its tensor does.
 */
void dl_quant_encode(const struct dl_quant *q, uint64_t key, uint64_t at,
	const float *x, size_t n, void *codes, void *scales);

/* Decodes n values from the beginning of a block on. */
void dl_quant_decode(enum dl_codec c, uint32_t block, const void *codes,
	const void *scales, size_t n, float *out);

/* Where values lie, from the beginning of a block on. */
struct dl_codes {
	enum dl_codec codec;
	uint32_t block;
	const void *codes, *scales;
};

/* Of the same codec and block? */
int dl_codes_alike(const struct dl_codes *a, const struct dl_codes *b);

/* n values, decoded into scratch unless they lie there as f32. */
const float *dl_codes_values(
	const struct dl_codes *c, size_t n, float *scratch);

/*
 * The inner product of the n values of two, summed in whole numbers a block and
 * those, times both scales, in double: exact but for that last sum. -1 unless
 * both are int4 in blocks of one size, and no scale could make a value
 * infinite.
 */
int dl_quant_dot(const struct dl_codes *x, const struct dl_codes *y, size_t n,
	double *product);

/*
 * Those of all pairs (i, j >= i) of m <= DL_QUANT_MANY, in order, bit for bit
 * the same; -1 under the same conditions.
 */
int dl_quant_gram(
	const struct dl_codes *x, size_t m, size_t n, double *products);

/* Values that lie beside sums and are read after them. */
struct dl_beside {
	const float *x, *y;
};

/* sum = sum + c[j] times what dl_quant_decode gives of from[j], in double, j
 * from 0 to m - 1; all are alike. When it is the first, sum is -0 before, which
 * leaves even -0 as it is when added to. What is beside, unless NULL, is
 * fetched meanwhile, somewhat further on, for who goes on there. */
void dl_quant_add(const struct dl_codes *from, const double *c, size_t m,
	size_t n, int first, double *sum, const struct dl_beside *beside);

#endif
