/*
 * Differences and sums of tensors of every dtype we do math on.
 */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tensor/arith.h"
#include "tests/tap.h"

enum { N = 600 }; /* more than one part */

/* base + (theta - base) is theta, where f32 holds the difference. */
static void test_there_and_back(enum dl_dtype t)
{
	static unsigned char base[8 * N + 1], theta[8 * N + 1], got[8 * N + 1];
	float values[N], delta[N];
	struct dl_rng r = {(uint64_t)t, 0};
	size_t bytes = N * dl_dtype_bits(t) / 8;

	/* Halves of small integers are exact in every float. */
	for (int k = 0; k < 2; k++) {
		for (size_t i = 0; i < N; i++)
			values[i] = (float)dl_rng_below(&r, t == DL_BOOL ? 2
							: 100)
				/ (dl_dtype_is_float(t) ? 2 : 1);
		dl_from_f32((k ? theta : base) + 1, values, t, N);
	}
	dl_subtract(delta, theta + 1, base + 1, t, N);
	memcpy(got, base, sizeof got);
	dl_add(got + 1, delta, t, N);
	ok(!memcmp(got + 1, theta + 1, bytes) && memcmp(base, theta, bytes),
		"%s: base + (theta - base) is theta", dl_dtype_name(t));
}

static int64_t add_i64(int64_t v, float delta)
{
	dl_add(&v, &delta, DL_I64, 1);
	return v;
}

static void test_edges(void)
{
	double a = 1 + 0x1p-40, b = 1, d[2];
	float delta, zero[2] = {0, -0.0f};
	int64_t big = (INT64_C(1) << 40) + 1;
	int64_t base = INT64_C(1) << 40, exact = INT64_MAX - 1;
	unsigned char u8 = 250, flag = 1;
	float nan_bits[2];
	uint32_t bits[2] = {0x7fa00001, 0x80000000};

	dl_subtract(&delta, &a, &b, DL_F64, 1);
	ok(delta == 0x1p-40f, "F64 is subtracted in double");
	dl_add(&b, &delta, DL_F64, 1);
	ok(a == b, "F64 is added in double");
	dl_subtract(&delta, &big, &base, DL_I64, 1);
	ok(delta == 1, "I64 beyond f32 is subtracted exactly");
	ok(add_i64(base, 1) == big && add_i64(exact, 0) == exact,
		"I64 is added exactly, and zero keeps it");
	ok(add_i64(INT64_MAX - 5, 1e10f) == INT64_MAX
			&& add_i64(INT64_MIN + 5, -1e10f) == INT64_MIN,
		"I64 is clamped");
	delta = 10;
	dl_add(&u8, &delta, DL_U8, 1);
	dl_add(&flag, &delta, DL_BOOL, 1);
	ok(u8 == 255 && flag == 1, "U8 and BOOL are clamped");
	delta = -20;
	dl_add(&flag, &delta, DL_BOOL, 1);
	delta = -300;
	dl_add(&u8, &delta, DL_U8, 1);
	ok(u8 == 0 && flag == 0, "also below");
	memcpy(nan_bits, bits, sizeof bits);
	dl_add(nan_bits, zero, DL_F32, 2);
	ok(!memcmp(nan_bits, bits, sizeof bits),
		"zero keeps the bits of a NaN and of -0");
	dl_to_f64(d, (int16_t[]){-2, 3}, DL_I16, 2);
	ok(d[0] == -2 && d[1] == 3, "signs are extended");
}

/* Ones, then infinity, no number and the largest number in the last place. */
static void test_finite(enum dl_dtype t, unsigned exponents)
{
	unsigned width = dl_dtype_bits(t) / 8;
	unsigned char v[8 * 100] = {0};
	float one[100];
	int infinite, nan, largest;

	for (size_t i = 0; i < 100; i++)
		one[i] = -1;
	dl_from_f32(v, one, t, 100);
	v[100 * width - 1] = 0xff; /* sign, and the exponent's high bits */
	v[100 * width - 2] = (unsigned char)exponents;
	if (t == DL_F16) {
		v[199] = 0xfc;
		v[198] = 0;
	}
	infinite = dl_is_finite(v, t, 100) || !dl_is_finite(v, t, 99);
	v[100 * width - 2]++;
	nan = dl_is_finite(v, t, 100);
	v[100 * width - 2] = (unsigned char)(exponents - 1);
	if (t == DL_F16)
		v[199] = 0xfb;
	largest = dl_is_finite(v, t, 100);
	ok(!infinite && !nan && largest, "%s: what is finite is known",
		dl_dtype_name(t));
}

int main(void)
{
	for (int t = 0; t < DL_DTYPES; t++)
		if (dl_arith_able((enum dl_dtype)t))
			test_there_and_back((enum dl_dtype)t);
	test_edges();
	test_finite(DL_F64, 0xf0);
	test_finite(DL_F32, 0x80);
	test_finite(DL_F16, 0);
	test_finite(DL_BF16, 0x80);
	ok(dl_is_finite((int64_t[]){-1}, DL_I64, 1), "integers are");
	return done_testing();
}
