/* Element types: sizes, names, and conversions against a reference that only
 * knows what the bits mean. */
#include "tensor/dtype.h"

#include <math.h>
#include <string.h>

#include "../tap.h"

struct format {
	enum dl_dtype dtype;
	int exponent, mantissa; /* bits */
};

static const struct format f16 = {DL_F16, 5, 10}, bf16 = {DL_BF16, 8, 7};

/* What the bits of a 16-bit float mean. */
static double meaning(const struct format *f, uint32_t h)
{
	int bias = (1 << (f->exponent - 1)) - 1;
	int e = (int)(h >> f->mantissa) & ((1 << f->exponent) - 1);
	uint32_t m = h & ((1u << f->mantissa) - 1);
	double v;

	if (e == (1 << f->exponent) - 1)
		v = m ? NAN : INFINITY;
	else if (!e)
		v = ldexp(m, 1 - bias - f->mantissa);
	else
		v = ldexp(m + (1u << f->mantissa), e - bias - f->mantissa);
	return h & 0x8000 ? -v : v;
}

static float to_float(enum dl_dtype t, uint16_t h)
{
	float x;

	dl_to_f32(&x, &h, t, 1);
	return x;
}

static uint16_t from_float(enum dl_dtype t, float x)
{
	uint16_t h;

	dl_from_f32(&h, &x, t, 1);
	return h;
}

static int same(double a, double b)
{
	return isnan(a) ? isnan(b) != 0 : a == b && !signbit(a) == !signbit(b);
}

static void test_all_16(const struct format *f)
{
	const char *name = dl_dtype_name(f->dtype);
	int wrong = 0, back = 0;

	for (uint32_t h = 0; h < 0x10000; h++) {
		float x = to_float(f->dtype, (uint16_t)h);

		wrong += !same(x, meaning(f, h));
		back += isnan(x) ? !isnan(to_float(
					   f->dtype, from_float(f->dtype, x)))
				 : from_float(f->dtype, x) != h;
	}
	ok(!wrong, "every %s to f32: %d wrong", name, wrong);
	ok(!back, "and back: %d wrong", back);
}

/* Between neighbours: the midpoint goes to the even one, its neighbours in f32
 * to the nearer one. */
static void test_rounding(const struct format *f)
{
	uint32_t infinity = ((1u << f->exponent) - 1) << f->mantissa;
	int wrong = 0;

	for (uint32_t h = 0; h < infinity; h++) {
		double a = meaning(f, h), b = meaning(f, h + 1);
		float mid;

		if (isinf(b)) /* as if the range went on */
			b = a + (a - meaning(f, h - 1));
		mid = (float)(a / 2 + b / 2);
		for (uint32_t sign = 0; sign <= 0x8000; sign += 0x8000) {
			float s = sign ? -1 : 1;

			wrong += from_float(f->dtype, s * mid) !=
				 (sign | (h + (h & 1)));
			wrong += from_float(f->dtype, s * nextafterf(mid, 0)) !=
				 (sign | h);
			wrong += from_float(f->dtype,
					 s * nextafterf(mid, INFINITY)) !=
				 (sign | (h + 1));
		}
	}
	ok(!wrong, "f32 to %s rounds to nearest even: %d wrong",
		dl_dtype_name(f->dtype), wrong);
}

/* Many at once, which are worked on in vectors, are as one by one. */
static void test_many(const struct format *f)
{
	enum { N = 0x10000 };
	float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
	uint16_t *h = malloc(N * sizeof *h), *got = malloc(N * sizeof *got);
	int wrong = 0;

	for (uint32_t i = 0; i < N; i++) {
		uint32_t bits = i * 0x9e3779b9u;

		h[i] = (uint16_t)i;
		memcpy(&x[i], &bits, sizeof bits);
		x[i] = i % 2 ? x[i] : to_float(f->dtype, h[i]) * 1.0004f;
	}
	dl_from_f32(got, x, f->dtype, N);
	dl_to_f32(y, h, f->dtype, N);
	for (uint32_t i = 0; i < N; i++) {
		float one = to_float(f->dtype, h[i]);

		wrong += got[i] != from_float(f->dtype, x[i]);
		wrong += memcmp(&one, &y[i], sizeof one) != 0;
	}
	ok(!wrong, "many %s at once: %d wrong", dl_dtype_name(f->dtype), wrong);
	free(x);
	free(y);
	free(h);
	free(got);
}

static void test_special(const struct format *f)
{
	uint16_t infinity = from_float(f->dtype, INFINITY);
	uint32_t payload = 0x7f800001; /* all of it in the bits that go */
	float x;

	ok(isinf(to_float(f->dtype, infinity)), "infinity stays");
	ok(from_float(f->dtype, -INFINITY) == (infinity | 0x8000),
		"minus infinity stays");
	ok(isnan(to_float(f->dtype, from_float(f->dtype, NAN))), "NaN stays");
	memcpy(&x, &payload, sizeof x);
	ok(isnan(to_float(f->dtype, from_float(f->dtype, x))),
		"NaN with a low payload stays");
	ok(from_float(f->dtype, -0.0f) == 0x8000, "minus zero stays");
	ok(from_float(f->dtype, 0x1p-149f) == 0, "the smallest f32 is zero");
	ok(from_float(f->dtype, 3.4028235e38f) == infinity,
		"the largest f32 is infinity");
}

static void test_names(void)
{
	enum dl_dtype t;
	int wrong = 0;

	for (int i = 0; i < DL_DTYPES; i++) {
		const char *name = dl_dtype_name((enum dl_dtype)i);

		wrong += dl_dtype_parse(name, strlen(name), &t) ||
			 t != (enum dl_dtype)i || !dl_dtype_bits(t);
		wrong += dl_dtype_is_float(t) && dl_dtype_is_integer(t);
	}
	ok(!wrong, "names parse back");
	ok(dl_dtype_parse("F32 ", 4, &t) && dl_dtype_parse("f32", 3, &t) &&
			dl_dtype_parse("", 0, &t),
		"other names do not");
	ok(dl_dtype_bits(DL_F4) == 4 && dl_dtype_bits(DL_F6_E2M3) == 6 &&
			dl_dtype_bits(DL_C64) == 64,
		"odd sizes");
}

/* One value through a dtype at an odd address. */
static float through(enum dl_dtype t, float x)
{
	unsigned char at[16];

	dl_from_f32(at + 1, &x, t, 1);
	dl_to_f32(&x, at + 1, t, 1);
	return x;
}

static void test_integers(void)
{
	static const struct {
		enum dl_dtype t;
		float in, out;
	} c[] = {
		{DL_BOOL, 7, 1},
		{DL_BOOL, 0.5f, 0},
		{DL_U8, 255.4f, 255},
		{DL_U8, 1e9f, 255},
		{DL_U8, -3, 0},
		{DL_U8, 2.5f, 2},
		{DL_U8, 3.5f, 4},
		{DL_I8, -128.5f, -128},
		{DL_I8, -200, -128},
		{DL_I8, 200, 127},
		{DL_U16, 65535, 65535},
		{DL_U16, 65536, 65535},
		{DL_I16, -32768, -32768},
		{DL_I16, 40000, 32767},
		{DL_I32, 16777216, 16777216},
		{DL_I32, -3e9f, -2147483648.0f},
		{DL_U32, 5e9f, 4294967296.0f},
		{DL_I64, -1e19f, -9223372036854775808.0f},
		{DL_I64, 1e19f, 9223372036854775808.0f},
		{DL_I64, -1, -1},
		{DL_U64, 1e20f, 18446744073709551616.0f},
		{DL_U64, INFINITY, 18446744073709551616.0f},
		{DL_I32, NAN, 0},
		{DL_U64, NAN, 0},
		{DL_F64, 0.1f, 0.1f},
		{DL_F32, 0.1f, 0.1f},
	};

	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		float x = through(c[i].t, c[i].in);

		ok(x == c[i].out, "%g through %s: %g", (double)c[i].in,
			dl_dtype_name(c[i].t), (double)x);
	}
}

static void test_f64(void)
{
	double d = 1 + 0x1p-24; /* halfway: to even */
	float x;

	dl_to_f32(&x, &d, DL_F64, 1);
	ok(x == 1, "f64 rounds to nearest even");
	d = 1e300;
	dl_to_f32(&x, &d, DL_F64, 1);
	ok(isinf(x), "f64 above f32 is infinity");
}

int main(void)
{
	test_names();
	test_all_16(&f16);
	test_all_16(&bf16);
	test_many(&f16);
	test_many(&bf16);
	test_rounding(&f16);
	test_rounding(&bf16);
	test_special(&f16);
	test_special(&bf16);
	test_integers();
	test_f64();
	return done_testing();
}
