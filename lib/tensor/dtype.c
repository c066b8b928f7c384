#include "tensor/dtype.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"

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

static uint32_t bits_of(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof u);
	return u;
}

static float float_of(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof f);
	return f;
}

static float from_f16(uint32_t h)
{
	uint32_t sign = (h & 0x8000) << 16, low = h & 0x7fff;

	if (low >= 0x7c00)
		return float_of(sign | 0x7f800000 | (low & 0x3ff) << 13);
	if (low < 0x400) /* denormal: exact as a multiple of 2^-24 */
		return float_of(sign | bits_of((float)low * 0x1p-24f));
	return float_of(sign | ((low << 13) + (112u << 23)));
}

/* Round to nearest even; NaN stays NaN, made quiet, with its high bits. */
static uint16_t to_f16(float f)
{
	uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, shift, m, rest, half;

	u &= 0x7fffffff;
	if (u > 0x7f800000)
		return (uint16_t)(sign | 0x7e00 | (u >> 13 & 0x1ff));
	if (u >= 0x477ff000) /* 65520 and above round to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (u >= 0x38800000) { /* normal in f16 */
		u += 0xfff + (u >> 13 & 1);
		return (uint16_t)(sign | (u - (112u << 23)) >> 13);
	}
	if (u < 0x33000000) /* below half the smallest denormal */
		return (uint16_t)sign;
	shift = 126 - (u >> 23);
	m = (u & 0x7fffff) | 0x800000;
	rest = m & ((1u << shift) - 1);
	half = 1u << (shift - 1);
	m >>= shift;
	m += rest > half || (rest == half && (m & 1));
	return (uint16_t)(sign | m);
}

static uint16_t to_bf16(float f)
{
	uint32_t u = bits_of(f);

	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
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
		for (size_t i = 0; i < n; i++)
			out[i] = float_of(dl_le32(p + 4 * i));
	} else if (t == DL_F16) {
		for (size_t i = 0; i < n; i++)
			out[i] = from_f16(dl_le16(p + 2 * i));
	} else if (t == DL_BF16) {
		for (size_t i = 0; i < n; i++)
			out[i] = float_of((uint32_t)dl_le16(p + 2 * i) << 16);
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
		for (size_t i = 0; i < n; i++)
			dl_put_le32(p + 4 * i, bits_of(in[i]));
	} else if (t == DL_F16) {
		for (size_t i = 0; i < n; i++)
			dl_put_le16(p + 2 * i, to_f16(in[i]));
	} else if (t == DL_BF16) {
		for (size_t i = 0; i < n; i++)
			dl_put_le16(p + 2 * i, to_bf16(in[i]));
	} else {
		for (size_t i = 0; i < n; i++)
			store(p + size * i, t, in[i]);
	}
}
