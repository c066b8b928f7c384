/*
 * Codecs: what they hold exactly, how far they are off on normal values
 * against theory, and the odd blocks.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "tensor/quant.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../tap.h"

/* A tensor's codes and scales. */
struct coded {
	unsigned char *codes, *scales;
	size_t bytes, scale_bytes;
};

static struct coded encode(const struct dl_quant *q, const float *x, size_t n)
{
	struct coded c = {.bytes = dl_codec_bytes(q->codec, n),
		.scale_bytes = 2 * dl_codec_scales(q->codec, q->block, n)};

	c.codes = dl_alloc(c.bytes + 1);
	c.scales = dl_alloc(c.scale_bytes + 1);
	dl_quant_encode(q, dl_quant_key(q, "t", 1), 0, x, n, c.codes, c.scales);
	return c;
}

static void release(struct coded *c)
{
	free(c->codes);
	free(c->scales);
}

static float *decode(const struct dl_quant *q, const struct coded *c, size_t n)
{
	float *y = dl_alloc_array(n + 1, sizeof *y);

	dl_quant_decode(q->codec, q->block, c->codes, c->scales, n, y);
	return y;
}

static float *round_trip(const struct dl_quant *q, const float *x, size_t n)
{
	struct coded c = encode(q, x, n);
	float *y = decode(q, &c, n);

	release(&c);
	return y;
}

static float *normal(size_t n, uint64_t seed, double size)
{
	struct dl_rng r = {seed, 0};
	float *x = dl_alloc_array(n + 1, sizeof *x);

	for (size_t i = 0; i < n; i++)
		x[i] = (float)(size * dl_rng_normal(&r));
	return x;
}

static double relative_error(const float *x, const float *y, size_t n)
{
	double off = 0, all = 0;

	for (size_t i = 0; i < n; i++) {
		off += ((double)y[i] - x[i]) * ((double)y[i] - x[i]);
		all += (double)x[i] * x[i];
	}
	return all > 0 ? sqrt(off / all) : 0;
}

static int same_floats(const float *x, const float *y, size_t n)
{
	return !memcmp(x, y, n * sizeof *x);
}

static void test_names(void)
{
	enum dl_codec c = DL_CODECS;
	int all = 1;

	for (int i = 0; i < DL_CODECS; i++)
		all &= !dl_codec_parse(dl_codec_name((enum dl_codec)i), &c) &&
		       c == (enum dl_codec)i;
	ok(all, "every codec has a name of its own");
	ok(dl_codec_parse("int3", &c) && dl_codec_parse("", &c),
		"other names name none");
}

/* Encoding what was decoded gives the same bytes, at any size. */
static void test_idempotent(void)
{
	for (int i = 0; i < DL_CODECS; i++) {
		int same = 1;

		for (size_t n = 0; n < 300; n += n < 40 ? 1 : 37)
			for (uint32_t b = 16; b <= 256; b *= 4) {
				struct dl_quant q = {(enum dl_codec)i, b, 0, 0};
				float *x = normal(n, n + 1, 1e-3);
				struct coded c = encode(&q, x, n), d;
				float *y = decode(&q, &c, n);

				d = encode(&q, y, n);
				same &= !memcmp(c.codes, d.codes, c.bytes) &&
					!memcmp(c.scales, d.scales,
						c.scale_bytes);
				release(&c);
				release(&d);
				free(x);
				free(y);
			}
		ok(same, "%s: what was decoded encodes to the same bytes",
			dl_codec_name((enum dl_codec)i));
	}
}

/* Values that a codec holds, with the largest code in each block. */
static float held(enum dl_codec c, size_t i)
{
	int k = (int)(i * 7 % 31);

	switch (c) {
	case DL_CODEC_INT8:
		return 0x1.4p-9f * (float)(i % 16 ? k * 8 - 120 : 127);
	case DL_CODEC_INT4:
		return 0x1.4p-9f * (float)(i % 16 ? k % 15 - 7 : -7);
	case DL_CODEC_FP4:
		return 0x1.4p-9f *
		       (float)ldexp(k & 1 ? 1 : -1, i % 16 ? -(k % 7) : 0);
	case DL_CODEC_INT2:
		return 0x1.4p-9f * (float)(i % 16 ? k % 3 - 1 : 1);
	case DL_CODEC_INT1:
		return 0x1.4p-9f * (float)(k & 1 ? 1 : -1);
	default:
		return 0x1.4p-9f * (float)(k - 15);
	}
}

static void test_exact(void)
{
	enum { N = 1000 };
	float x[N];

	for (int i = 0; i < DL_CODECS; i++) {
		struct dl_quant q = {(enum dl_codec)i, 32, 0, 0};
		float *y;

		for (size_t j = 0; j < N; j++)
			x[j] = held(q.codec, j);
		y = round_trip(&q, x, N);
		ok(same_floats(x, y, N), "%s: exact for what it can hold",
			dl_codec_name(q.codec));
		free(y);
	}
}

/* The chance that the largest |x| of b normal values is below a. */
static double below(double a, uint32_t b)
{
	return pow(erf(a / sqrt(2)), b);
}

/* What code an |x| of a block whose largest is a should get, decoded. */
static double ideal(enum dl_codec c, double x, double a)
{
	double y = x / a, step = c == DL_CODEC_INT8 ? 1. / 127 : 1. / 7;

	if (c != DL_CODEC_FP4)
		return a * step * nearbyint(y / step);
	if (y < 0x1p-7)
		return 0;
	y = exp2(floor(log2(y * 4 / 3)));
	return a * (y < 0x1p-6 ? 0x1p-6 : y);
}

/*
 * The mean square of a value's error in a block of b normal values that is
 * scaled by the largest of them: that one is exact, the others are normal
 * values that are no larger, and the largest has density d/da below(a, b). In
 * int8 the rounding of the scale to 8 bits is as large as a step, so that the
 * largest is no better than the others.
 */
static double theory_of_largest(enum dl_codec c, uint32_t b)
{
	const double da = 0.05, dx = 1. / 4096;
	double mean = 0;

	for (double a = da; a < 7; a += da) {
		double chance = below(a + da / 2, b) - below(a - da / 2, b);
		double sum = 0, weight = 0;

		if (chance < 1e-9)
			continue;
		for (double x = dx / 2; x < a; x += dx) {
			double density = exp(-x * x / 2);
			double off = x - ideal(c, x, a);

			sum += density * off * off;
			weight += density;
		}
		mean += chance * sum / weight *
			(c == DL_CODEC_INT8 ? 1 : 1 - 1. / b);
	}
	return mean;
}

/*
 * Of normal values in floating point of that many bits after the point: a step
 * of 2^(e - bits) between 2^e and 2^(e+1), and the square of a step / 12.
 */
static double theory_of_float(int bits)
{
	double mean = 0;

	for (int e = -20; e < 4; e++)
		mean += exp2(2 * (e - bits)) / 12 *
			(erf(exp2(e + 1) / sqrt(2)) - erf(exp2(e) / sqrt(2)));
	return mean;
}

/*
 * int1: the best scale of a block is the mean m of |x|, which leaves 1 - E m^2
 * = 1 - (2 / pi + (1 - 2 / pi) / b). int2: the three levels of least squares,
 * 0.1902 (Max, Quantizing for minimum distortion, 1960) for a block so large
 * that its own fit is everyone's.
 */
static double theory(const struct dl_quant *q)
{
	switch (q->codec) {
	case DL_CODEC_F32:
		return 0;
	case DL_CODEC_F16:
		return theory_of_float(10);
	case DL_CODEC_BF16:
		return theory_of_float(7);
	case DL_CODEC_INT2:
		return 0.1902;
	case DL_CODEC_INT1:
		return (1 - 2 / acos(-1)) * (1 - 1. / q->block);
	default:
		return theory_of_largest(q->codec, q->block);
	}
}

static void test_error(uint32_t block)
{
	enum { N = 1 << 17 };
	float *x = normal(N, 1, 1);

	for (int i = 0; i < DL_CODECS; i++) {
		struct dl_quant q = {(enum dl_codec)i, block, 0, 0};
		double expected = sqrt(theory(&q)), got;
		float *y;

		if (q.codec == DL_CODEC_INT2)
			q.block = 1024;
		y = round_trip(&q, x, N);
		got = relative_error(x, y, N);
		ok(fabs(got - expected) <= 0.01 * expected,
			"%s, blocks of %u: error %.6f, in theory %.6f",
			dl_codec_name(q.codec), (unsigned)q.block, got,
			expected);
		free(y);
	}
	free(x);
}

static void test_bits(void)
{
	const uint64_t n = 1 << 20;
	uint64_t bytes = dl_codec_bytes(DL_CODEC_INT4, n) +
			 2 * dl_codec_scales(DL_CODEC_INT4, DL_QUANT_BLOCK, n);

	ok(8. * (double)bytes / (double)n <= 4.5,
		"int4 takes %.4f bits a value", 8. * (double)bytes / (double)n);
}

/* Is no value larger than the largest, but for the rounding of a scale, and by
 * chance for a step of the least scale there is? */
static int no_larger(const float *y, size_t n, float most, int stochastic)
{
	double limit = fabs((double)most) * 1.008;

	if (stochastic && most != 0)
		limit += (double)FLT_MIN;
	for (size_t i = 0; i < n; i++)
		if (!(fabs((double)y[i]) <= limit))
			return 0;
	return 1;
}

/* Zeros, denormals, the largest and smallest numbers, one huge outlier. */
static void test_odd_blocks(void)
{
	enum { N = 64 };
	static const float most[] = {0, -0.0f, 0x1p-149f, -FLT_MIN, 3e-37f,
		1e-30f, 1, FLT_MAX, -FLT_MAX};
	float x[N];

	for (int i = 0; i < 2 * DL_CODECS; i++) {
		struct dl_quant q = {(enum dl_codec)(i / 2), 16, i % 2, 9};
		int good = 1;

		for (size_t m = 0; m < sizeof most / sizeof *most; m++) {
			float *y;

			for (size_t j = 0; j < N; j++)
				x[j] = j % 16 ? most[m] * 0x1p-20f : most[m];
			/* F16 and BF16 cannot hold it, which callers find. */
			if (fabsf(most[m]) == FLT_MAX && i / 2 && i / 2 < 3)
				continue;
			y = round_trip(&q, x, N);
			good &= no_larger(y, N, most[m], q.stochastic);
			free(y);
		}
		ok(good, "%s %s: odd blocks stay finite",
			dl_codec_name(q.codec),
			i % 2 ? "by chance" : "nearest");
	}
}

/* The mean of many draws is the value, at every codec. */
static void test_unbiased(void)
{
	enum { N = 40, DRAWS = 10000 };
	float *x = normal(N, 3, 1);

	x[0] = 0;
	for (int i = DL_CODEC_F16; i < DL_CODECS; i++) {
		double sum[N] = {0}, square[N] = {0}, worst = 0;

		for (uint64_t seed = 0; seed < DRAWS; seed++) {
			struct dl_quant q = {(enum dl_codec)i, 16, 1, seed};
			float *y = round_trip(&q, x, N);

			for (size_t j = 0; j < N; j++) {
				double off = (double)y[j] - (double)x[j];

				sum[j] += off;
				square[j] += off * off;
			}
			free(y);
		}
		for (size_t j = 0; j < N; j++) {
			double mean = sum[j] / DRAWS;
			double variance = square[j] / DRAWS - mean * mean;
			double error = sqrt(variance / DRAWS);

			if (error > 0 && fabs(mean) / error > worst)
				worst = fabs(mean) / error;
			else if (!(error > 0) && mean != 0)
				worst = INFINITY;
		}
		ok(worst < 4,
			"%s: mean of %d draws off by %.2f standard errors",
			dl_codec_name((enum dl_codec)i), DRAWS, worst);
	}
	free(x);
}

/* Draws depend on the place in the tensor, not on how it is cut. */
static void test_cuts(void)
{
	enum { N = 1000, CUT = 256 };
	struct dl_quant q = {DL_CODEC_INT4, 64, 1, 5};
	float *x = normal(N, 4, 1);
	struct coded whole = encode(&q, x, N), cut = encode(&q, x, N);
	uint64_t key = dl_quant_key(&q, "t", 1);

	memset(cut.codes, 0, cut.bytes);
	for (size_t at = 0; at < N; at += CUT)
		dl_quant_encode(&q, key, at, x + at,
			N - at < CUT ? N - at : CUT, cut.codes + at / 2,
			cut.scales + at / 64 * 2);
	ok(!memcmp(whole.codes, cut.codes, whole.bytes) &&
			!memcmp(whole.scales, cut.scales, whole.scale_bytes),
		"a tensor in pieces gives the same bytes");
	release(&cut);
	q.seed = 6;
	cut = encode(&q, x, N);
	ok(memcmp(whole.codes, cut.codes, whole.bytes) != 0,
		"another seed gives others");
	release(&cut);
	release(&whole);
	free(x);
}

/* What was lost is added to the next: the sums stay one error apart. */
static void test_feedback(void)
{
	enum { N = 256, ROUNDS = 1000 };
	struct dl_quant q = {DL_CODEC_INT4, 64, 0, 0};
	double sum[N] = {0};
	float error[N] = {0};
	int within = 1;

	for (uint64_t r = 0; r < ROUNDS; r++) {
		float *x = normal(N, 100 + r, 1e-3), *y;

		for (size_t i = 0; i < N; i++) {
			sum[i] += (double)x[i];
			x[i] += error[i];
		}
		y = round_trip(&q, x, N);
		for (size_t i = 0; i < N; i++) {
			error[i] = x[i] - y[i];
			sum[i] -= (double)y[i];
			/* One error, and what adding in f32 rounded away. */
			within &= fabs(sum[i] - (double)error[i]) < 1e-7;
		}
		free(x);
		free(y);
	}
	ok(within, "with feedback sums of 1000 updates are one error apart");
}

int main(void)
{
	test_names();
	test_idempotent();
	test_exact();
	test_error(DL_QUANT_BLOCK);
	test_error(32);
	test_bits();
	test_odd_blocks();
	test_unbiased();
	test_cuts();
	test_feedback();
	return done_testing();
}
