/*
 * Element types of safetensors, and conversion of the floating ones to f32.
 */
#ifndef DL_TENSOR_DTYPE_H
#define DL_TENSOR_DTYPE_H

#include <stddef.h>
#include <stdint.h>

enum dl_dtype {
	DL_BOOL, DL_F4, DL_F6_E2M3, DL_F6_E3M2, DL_U8, DL_I8, DL_F8_E5M2,
	DL_F8_E4M3, DL_F8_E8M0, DL_I16, DL_U16, DL_F16, DL_BF16, DL_I32,
	DL_U32, DL_F32, DL_C64, DL_F64, DL_I64, DL_U64, DL_DTYPES
};

const char *dl_dtype_name(enum dl_dtype t); /* "F32" */
/* -1 when s[0..n) names no dtype. */
int dl_dtype_parse(const char *s, size_t n, enum dl_dtype *t);
unsigned dl_dtype_bits(enum dl_dtype t); /* of one element */
int dl_dtype_is_float(enum dl_dtype t);  /* F64 F32 F16 BF16: we do math */
int dl_dtype_is_integer(enum dl_dtype t); /* BOOL and the I and U types */

/*
 * n elements at any alignment to f32 (F64 is rounded) and back (round to
 * nearest even). Integers convert too: exact to 2^24, rounded and clamped on
 * the way back. Other dtypes are a caller's fault (assert).
 */
void dl_to_f32(float *out, const void *in, enum dl_dtype t, size_t n);
void dl_from_f32(void *out, const float *in, enum dl_dtype t, size_t n);

#endif
