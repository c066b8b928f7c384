#include "merge/kernels.h"

#include <string.h>

/*
 * Vectors as wide as this level's registers, written with the compilers'
 * vector types: a wider level does the same operations on the same lanes with
 * fewer instructions. DL_KERNELS names the level's table.
 */
#if defined __AVX512F__
enum { WIDE = 8 };
#elif defined __AVX2__
enum { WIDE = 4 };
#else
enum { WIDE = 2 };
#endif
enum { LANES = 16, PARTS = LANES / WIDE, SINGLES = 2 * WIDE };

typedef double wide __attribute__((vector_size(WIDE * sizeof(double))));
typedef float half __attribute__((vector_size(WIDE * sizeof(float))));
typedef float single __attribute__((vector_size(SINGLES * sizeof(float))));

static inline wide widen(const float *x)
{
	half v;

	memcpy(&v, x, sizeof v);
	return __builtin_convertvector(v, wide);
}

static inline wide load_wide(const double *x)
{
	wide v;

	memcpy(&v, x, sizeof v);
	return v;
}

/* The lanes' sum: halves are added until one is left. */
static double total(double lane[LANES])
{
	for (int half_of = LANES / 2; half_of; half_of /= 2)
		for (int j = 0; j < half_of; j++)
			lane[j] += lane[j + half_of];
	return lane[0];
}

static double dot(const float *x, const float *y, size_t n)
{
	wide sum[PARTS] = {{0}};
	double lane[LANES];
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 8
		for (int k = 0; k < PARTS; k++)
			sum[k] += widen(x + i + k * WIDE) *
				  widen(y + i + k * WIDE);
	memcpy(lane, sum, sizeof lane);
	for (int j = 0; i < n; i++, j++)
		lane[j] += (double)x[i] * (double)y[i];
	return total(lane);
}

static double square(const float *x, size_t n)
{
	return dot(x, x, n);
}

static double square_wide(const double *x, size_t n)
{
	wide sum[PARTS] = {{0}};
	double lane[LANES];
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
#pragma GCC unroll 8
		for (int k = 0; k < PARTS; k++) {
			wide v = load_wide(x + i + k * WIDE);

			sum[k] += v * v;
		}
	memcpy(lane, sum, sizeof lane);
	for (int j = 0; i < n; i++, j++)
		lane[j] += x[i] * x[i];
	return total(lane);
}

static void accumulate(
	double *sum, double c, const float *x, const float *next, size_t n)
{
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		if (next)
			__builtin_prefetch(next + i);
#pragma GCC unroll 8
		for (int k = 0; k < LANES; k += WIDE) {
			wide v = load_wide(sum + i + k) + c * widen(x + i + k);

			memcpy(sum + i + k, &v, sizeof v);
		}
	}
	for (; i < n; i++)
		sum[i] += c * (double)x[i];
}

static void narrow(float *out, const double *x, size_t n)
{
	size_t i = 0;

	for (; i + WIDE <= n; i += WIDE) {
		half v = __builtin_convertvector(load_wide(x + i), half);

		memcpy(out + i, &v, sizeof v);
	}
	for (; i < n; i++)
		out[i] = (float)x[i];
}

/*
 * The f32 kernels: each formula is written once, for a vector of which k
 * elements are there; loops call it with k constant and then for the rest.
 */
static inline single load(const float *x, size_t k)
{
	single v = {0};

	memcpy(&v, x, k * sizeof *x);
	return v;
}

static inline void store(float *out, single v, size_t k)
{
	memcpy(out, &v, k * sizeof *out);
}

static inline void add_part(float *sum, float c, const float *x, size_t k)
{
	store(sum, load(sum, k) + c * load(x, k), k);
}

static void add(float *sum, float c, const float *x, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		add_part(sum + i, c, x + i, SINGLES);
	add_part(sum + i, c, x + i, n - i);
}

static inline void descend_part(
	float *theta, const float *update, float lr, size_t k)
{
	single g = -load(update, k);

	store(theta, load(theta, k) - lr * g, k);
}

static void descend(float *theta, const float *update, float lr, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		descend_part(theta + i, update + i, lr, SINGLES);
	descend_part(theta + i, update + i, lr, n - i);
}

static inline void momentum_part(float *theta, float *b, const float *update,
	float lr, float mu, size_t k)
{
	single g = -load(update, k), v = mu * load(b, k) + g;

	store(b, v, k);
	store(theta, load(theta, k) - lr * v, k);
}

static void momentum(float *theta, float *b, const float *update, float lr,
	float mu, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		momentum_part(theta + i, b + i, update + i, lr, mu, SINGLES);
	momentum_part(theta + i, b + i, update + i, lr, mu, n - i);
}

static inline void nesterov_part(float *theta, float *b, const float *update,
	float lr, float mu, size_t k)
{
	single g = -load(update, k), v = mu * load(b, k) + g;

	store(b, v, k);
	store(theta, load(theta, k) - lr * (g + mu * v), k);
}

static void nesterov(float *theta, float *b, const float *update, float lr,
	float mu, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		nesterov_part(theta + i, b + i, update + i, lr, mu, SINGLES);
	nesterov_part(theta + i, b + i, update + i, lr, mu, n - i);
}

const struct dl_kernels DL_KERNELS = {
	.square = square,
	.square_wide = square_wide,
	.dot = dot,
	.accumulate = accumulate,
	.narrow = narrow,
	.add = add,
	.descend = descend,
	.momentum = momentum,
	.nesterov = nesterov,
};
