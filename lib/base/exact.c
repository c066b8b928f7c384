#include "base/exact.h"

#include <stdint.h>
#include <string.h>

/* ln 2 in two parts: the first has so few bits that a product with any
 * exponent is exact. */
static const double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;

/* x = m 2^e, m from sqrt(1/2) to sqrt(2). */
static double split(double x, int *e)
{
	static const uint64_t mantissa = (UINT64_C(1) << 52) - 1;
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	*e = (int)(bits >> 52) - 1023;
	bits = (bits & mantissa) | UINT64_C(1023) << 52;
	memcpy(&x, &bits, sizeof x);
	if (x < 1.4142135623730951)
		return x;
	++*e;
	return x / 2;
}

double dl_exact_log(double x)
{
	static const double odd[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17,
		1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5,
		1.0 / 3};
	int e;
	double m = split(x, &e), s = (m - 1) / (m + 1), square = s * s;
	double sum = 0;

	/* 2 artanh s */
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		sum = (sum + odd[i]) * square;
	return e * ln2_high + (e * ln2_low + 2 * (s + s * sum));
}

/* 2^e, e from -1022 to 1023 */
static double power(int e)
{
	uint64_t bits = (uint64_t)(e + 1023) << 52;
	double x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

double dl_exact_exp(double x)
{
	double turns = x * 1.4426950408889634;
	int e = (int)(turns < 0 ? turns - 0.5 : turns + 0.5);
	double r = (x - e * ln2_high) - e * ln2_low, sum = 1;

	for (int k = 14; k > 0; k--)
		sum = 1 + sum * r / k;
	return sum * power(e);
}

double dl_exact_cos_turn(double v)
{
	int quarter = (int)(4 * v + 0.5);
	double a = 6.283185307179586 * (v - quarter / 4.0), square = a * a;
	int is_sine = quarter % 2;
	double sum = 1;

	for (int k = 18; k > 0; k -= 2)
		sum = 1 - sum * square / (k * (is_sine ? k + 1 : k - 1));
	if (is_sine)
		sum *= a;
	return quarter % 4 == 1 || quarter % 4 == 2 ? -sum : sum;
}
