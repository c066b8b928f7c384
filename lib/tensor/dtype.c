#include "tensor/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/quant_kernels.h"

#define NAMED(name, bits)                                                      \
	{                                                                      \
		name, sizeof name - 1, bits                                    \
	}

static const struct {
	const char *name;
	size_t length; /* of name */
	unsigned bits;
} dtypes[DL_DTYPES] = {
	[DL_BOOL] = NAMED("BOOL", 8),
	[DL_F4] = NAMED("F4", 4),
	[DL_F6_E2M3] = NAMED("F6_E2M3", 6),
	[DL_F6_E3M2] = NAMED("F6_E3M2", 6),
	[DL_U8] = NAMED("U8", 8),
	[DL_I8] = NAMED("I8", 8),
	[DL_F8_E5M2] = NAMED("F8_E5M2", 8),
	[DL_F8_E4M3] = NAMED("F8_E4M3", 8),
	[DL_F8_E8M0] = NAMED("F8_E8M0", 8),
	[DL_I16] = NAMED("I16", 16),
	[DL_U16] = NAMED("U16", 16),
	[DL_F16] = NAMED("F16", 16),
	[DL_BF16] = NAMED("BF16", 16),
	[DL_I32] = NAMED("I32", 32),
	[DL_U32] = NAMED("U32", 32),
	[DL_F32] = NAMED("F32", 32),
	[DL_C64] = NAMED("C64", 64),
	[DL_F64] = NAMED("F64", 64),
	[DL_I64] = NAMED("I64", 64),
	[DL_U64] = NAMED("U64", 64),
};

const char *dl_dtype_name(enum dl_dtype t)
{
	return dtypes[t].name;
}

int dl_dtype_parse(const char *s, size_t n, enum dl_dtype *t)
{
	for (int i = 0; i < DL_DTYPES; i++)
		if (dtypes[i].length == n && !memcmp(dtypes[i].name, s, n)) {
			*t = (enum dl_dtype)i;
			return 0;
		}
	return -1;
}

unsigned dl_dtype_bits(enum dl_dtype t)
{
	return dtypes[t].bits;
}

int dl_dtype_is_float(enum dl_dtype t)
{
	return t == DL_F64 || t == DL_F32 || t == DL_F16 || t == DL_BF16;
}

int dl_dtype_is_integer(enum dl_dtype t)
{
	switch (t) {
	case DL_BOOL:
	case DL_U8:
	case DL_I8:
	case DL_U16:
	case DL_I16:
	case DL_U32:
	case DL_I32:
	case DL_U64:
	case DL_I64:
		return 1;
	default:
		return 0;
	}
}

static double f64_of(uint64_t u)
{
	double d;

	memcpy(&d, &u, sizeof d);
	return d;
}

static float load(const unsigned char *p, enum dl_dtype t)
{
	switch (t) {
	case DL_BOOL:
		return p[0] != 0;
	case DL_U8:
		return p[0];
	case DL_I8:
		return (int8_t)p[0];
	case DL_U16:
		return dl_le16(p);
	case DL_I16:
		return (int16_t)dl_le16(p);
	case DL_U32:
		return (float)dl_le32(p);
	case DL_I32:
		return (float)(int32_t)dl_le32(p);
	case DL_U64:
		return (float)dl_le64(p);
	case DL_I64:
		return (float)(int64_t)dl_le64(p);
	case DL_F64:
		return (float)f64_of(dl_le64(p));
	default:
		assert(!"a dtype without conversion");
		return 0;
	}
}

void dl_to_f32(float *out, const void *in, enum dl_dtype t, size_t n)
{
	const unsigned char *p = in;
	size_t size = dl_dtype_bits(t) / 8;

	if (t == DL_F32) {
		if (n)
			memcpy(out, p, n * sizeof *out);
	} else if (t == DL_F16) {
		dl_quant_kernels()->from_f16(out, p, n);
	} else if (t == DL_BF16) {
		dl_quant_kernels()->from_bf16(out, p, n);
	} else {
		for (size_t i = 0; i < n; i++)
			out[i] = load(p + size * i, t);
	}
}

/* The nearest integer in [min, max]; NaN is 0. max may round up to 2^63 or
 * 2^64, which is out of range as an integer, so it is caught before. */
static int64_t to_signed(float f, unsigned bits)
{
	double limit = ldexp(1, (int)bits - 1), d = nearbyint(f);

	if (isnan(f))
		return 0;
	if (d >= limit)
		return (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
	return d < -limit ? (int64_t)-limit : (int64_t)d;
}

static uint64_t to_unsigned(float f, unsigned bits)
{
	double limit = ldexp(1, (int)bits), d = nearbyint(f);

	if (!(d > 0))
		return 0;
	return d >= limit ? UINT64_MAX >> (64 - bits) : (uint64_t)d;
}

static void store(unsigned char *p, enum dl_dtype t, float f)
{
	unsigned bits = dl_dtype_bits(t);
	uint64_t u;
	double d;

	switch (t) {
	case DL_BOOL:
		u = to_unsigned(f, 1);
		break;
	case DL_U8:
	case DL_U16:
	case DL_U32:
	case DL_U64:
		u = to_unsigned(f, bits);
		break;
	case DL_I8:
	case DL_I16:
	case DL_I32:
	case DL_I64:
		u = (uint64_t)to_signed(f, bits);
		break;
	case DL_F64:
		d = f;
		memcpy(&u, &d, sizeof u);
		break;
	default:
		assert(!"a dtype without conversion");
		return;
	}
	for (unsigned i = 0; i < bits; i += 8)
		*p++ = (unsigned char)(u >> i);
}

void dl_from_f32(void *out, const float *in, enum dl_dtype t, size_t n)
{
	unsigned char *p = out;
	size_t size = dl_dtype_bits(t) / 8;

	if (t == DL_F32) {
		if (n)
			memcpy(p, in, n * sizeof *in);
	} else if (t == DL_F16) {
		dl_quant_kernels()->to_f16(p, in, n);
	} else if (t == DL_BF16) {
		dl_quant_kernels()->to_bf16(p, in, n);
	} else {
		for (size_t i = 0; i < n; i++)
			store(p + size * i, t, in[i]);
	}
}
