/*
 * Element-wise work that files need: values, differences and sums of tensors
 * of any dtype we do math on, at any alignment.
 */
#ifndef DL_TENSOR_ARITH_H
#define DL_TENSOR_ARITH_H

#include <stddef.h>

#include "tensor/dtype.h"

int dl_arith_able(enum dl_dtype t); /* floats and integers */

/* n elements as double: exact for floats, and for integers to 2^53. */
void dl_to_f64(double *out, const void *in, enum dl_dtype t, size_t n);

/* theta[i] - base[i], rounded once, into delta. */
void dl_subtract(float *delta, const void *theta, const void *base,
	enum dl_dtype t, size_t n);

/*
 * theta[i] + delta[i], rounded to theta's dtype: taken in f32 for F32, F16 and
 * BF16, in double for F64, and for integers, which are clamped. Where delta is
 * 0 theta keeps its bits.
 */
void dl_add(void *theta, const float *delta, enum dl_dtype t, size_t n);

/* 1 when none of n elements is infinite or no number. */
int dl_is_finite(const void *in, enum dl_dtype t, size_t n);

/* The first of n elements that became infinite of a value, or by adding one,
 * that is finite and not 0; n when none did. */
size_t dl_find_overflow(
	const void *theta, const float *value, enum dl_dtype t, size_t n);

#endif
