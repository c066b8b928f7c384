#include "tensor/arith.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { PART = 256 }; /* elements converted at one time, on the stack */

int dl_arith_able(enum dl_dtype t)
{
	return dl_dtype_is_float(t) || dl_dtype_is_integer(t);
}

static int is_signed(enum dl_dtype t)
{
	return t == DL_I8 || t == DL_I16 || t == DL_I32 || t == DL_I64;
}

static double load_f64(const unsigned char *p)
{
	uint64_t bits = dl_le64(p);
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

static double load_integer(const unsigned char *p, enum dl_dtype t)
{
	unsigned bits = dl_dtype_bits(t);
	uint64_t v = 0;

	for (unsigned i = bits / 8; i--;)
		v = v << 8 | p[i];
	if (!is_signed(t))
		return (double)v;
	/* Bring the sign bit to the top, then back down with copies of it. */
	return (double)((int64_t)(v << (64 - bits)) >> (64 - bits));
}

static void store_f64(unsigned char *p, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	dl_put_le64(p, bits);
}

static void store_integer(unsigned char *p, enum dl_dtype t, double v)
{
	unsigned bits = t == DL_BOOL ? 1 : dl_dtype_bits(t);
	double low = is_signed(t) ? -ldexp(1, (int)bits - 1) : 0;
	double end = ldexp(1, is_signed(t) ? (int)bits - 1 : (int)bits);
	uint64_t u;

	v = rint(v);
	if (!(v > low)) /* also NaN */
		u = (uint64_t)(int64_t)low;
	else if (v >= end)
		u = is_signed(t) ? (UINT64_C(1) << (bits - 1)) - 1
				 : UINT64_MAX >> (64 - bits);
	else
		u = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
	for (unsigned i = 0; i < dl_dtype_bits(t) / 8; i++)
		p[i] = (unsigned char)(u >> 8 * i);
}

static void f32_to_f64(double *out, const void *in, enum dl_dtype t, size_t n)
{
	float part[PART];

	for (size_t i = 0; i < n; i += PART) {
		size_t count = n - i < PART ? n - i : PART;

		dl_to_f32(part, (const char *)in + i * dl_dtype_bits(t) / 8, t,
			count);
		for (size_t j = 0; j < count; j++)
			out[i + j] = part[j];
	}
}

void dl_to_f64(double *out, const void *in, enum dl_dtype t, size_t n)
{
	const unsigned char *p = in;
	unsigned width = dl_dtype_bits(t) / 8;

	if (t == DL_F64)
		for (size_t i = 0; i < n; i++)
			out[i] = load_f64(p + 8 * i);
	else if (dl_dtype_is_float(t))
		f32_to_f64(out, in, t, n);
	else
		for (size_t i = 0; i < n; i++)
			out[i] = load_integer(p + width * i, t);
}

/* F32, F16 and BF16 are exact in f32, so one subtraction rounds once. */
static void subtract_f32(float *delta, const void *theta, const void *base,
	enum dl_dtype t, size_t n)
{
	float a[PART], b[PART];

	dl_to_f32(a, theta, t, n);
	dl_to_f32(b, base, t, n);
	for (size_t i = 0; i < n; i++)
		delta[i] = a[i] - b[i];
}

static void subtract_f64(float *delta, const void *theta, const void *base,
	enum dl_dtype t, size_t n)
{
	double a[PART], b[PART];

	dl_to_f64(a, theta, t, n);
	dl_to_f64(b, base, t, n);
	for (size_t i = 0; i < n; i++)
		delta[i] = (float)(a[i] - b[i]);
}

void dl_subtract(float *delta, const void *theta, const void *base,
	enum dl_dtype t, size_t n)
{
	const unsigned char *a = theta, *b = base;
	size_t width = dl_dtype_bits(t) / 8;

	for (size_t i = 0; i < n; i += PART) {
		size_t count = n - i < PART ? n - i : PART;

		if (dl_dtype_is_float(t) && t != DL_F64)
			subtract_f32(delta + i, a + i * width, b + i * width,
				t, count);
		else
			subtract_f64(delta + i, a + i * width, b + i * width,
				t, count);
	}
}

static void add_one(unsigned char *p, float delta, enum dl_dtype t)
{
	float f;

	if (t == DL_F64) {
		store_f64(p, load_f64(p) + (double)delta);
	} else if (dl_dtype_is_float(t)) {
		dl_to_f32(&f, p, t, 1);
		f += delta;
		dl_from_f32(p, &f, t, 1);
	} else {
		store_integer(p, t, load_integer(p, t) + (double)delta);
	}
}

void dl_add(void *theta, const float *delta, enum dl_dtype t, size_t n)
{
	unsigned width = dl_dtype_bits(t) / 8;
	unsigned char *p = theta;

	for (size_t i = 0; i < n; i++)
		if (delta[i] != 0)
			add_one(p + i * width, delta[i], t);
}

int dl_is_finite(const void *in, enum dl_dtype t, size_t n)
{
	const unsigned char *p = in;
	int bad = 0;

	switch (t) {
	case DL_F64:
		for (size_t i = 0; i < n; i++)
			bad |= (dl_le64(p + 8 * i) >> 52 & 0x7ff) == 0x7ff;
		break;
	case DL_F32:
		for (size_t i = 0; i < n; i++)
			bad |= (dl_le32(p + 4 * i) >> 23 & 0xff) == 0xff;
		break;
	case DL_F16:
		for (size_t i = 0; i < n; i++)
			bad |= (dl_le16(p + 2 * i) & 0x7c00) == 0x7c00;
		break;
	case DL_BF16:
		for (size_t i = 0; i < n; i++)
			bad |= (dl_le16(p + 2 * i) & 0x7f80) == 0x7f80;
		break;
	default:
		break;
	}
	return !bad;
}

static int is_infinite(const unsigned char *p, enum dl_dtype t)
{
	switch (t) {
	case DL_F64:
		return isinf(load_f64(p));
	case DL_F32:
		return (dl_le32(p) & 0x7fffffff) == 0x7f800000;
	case DL_F16:
		return (dl_le16(p) & 0x7fff) == 0x7c00;
	case DL_BF16:
		return (dl_le16(p) & 0x7fff) == 0x7f80;
	default:
		return 0;
	}
}

size_t dl_find_overflow(
	const void *theta, const float *value, enum dl_dtype t, size_t n)
{
	unsigned width = dl_dtype_bits(t) / 8;
	const unsigned char *p = theta;
	size_t i = 0;

	while (i < n && !(is_infinite(p + i * width, t) && value[i] != 0 &&
				isfinite(value[i])))
		i++;
	return i;
}
