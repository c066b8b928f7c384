#include "merge/kernels.h"

#include <string.h>
#if defined __AVX512F__
#include <immintrin.h>
#endif

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
enum { LANES = DL_LANES, PARTS = LANES / WIDE, SINGLES = 2 * WIDE };
/* A tile of products, and how many of its parts are summed at once, as
 * registers allow. */
enum { TILE = WIDE == 8 ? 4 : 2, ONCE = WIDE == 8 ? 1 : 2 };
/* What is read so many elements later is fetched: deltas are many, and read
 * too little at a time for the CPU to see them coming. */
enum { AHEAD = 512 };

/* Out of line, a constant would be none. */
#define INLINE static inline __attribute__((always_inline))

typedef double wide __attribute__((vector_size(WIDE * sizeof(double))));
typedef float half __attribute__((vector_size(WIDE * sizeof(float))));
typedef float single __attribute__((vector_size(SINGLES * sizeof(float))));

/* gcc 12 converts halves of a register of 512 bits, unless told otherwise. */
INLINE wide widen(const float *x)
{
	half v;

	memcpy(&v, x, sizeof v);
#if defined __AVX512F__
	return (wide)_mm512_cvtps_pd((__m256)v);
#else
	return __builtin_convertvector(v, wide);
#endif
}

INLINE half narrowed(wide v)
{
#if defined __AVX512F__
	return (half)_mm512_cvtpd_ps((__m512d)v);
#else
	return __builtin_convertvector(v, half);
#endif
}

INLINE wide load_wide(const double *x)
{
	wide v;

	memcpy(&v, x, sizeof v);
	return v;
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
	return dl_lanes_total(lane);
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
	return dl_lanes_total(lane);
}

/* A product of two f32 is exact in double, so that adding it in the same
 * instruction rounds no differently. */
INLINE wide add_product(wide sum, wide x, wide y)
{
#if defined __AVX512F__
	return (wide)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)sum);
#else
	return sum + x * y;
#endif
}

/* The products of the x's with the y's, in ONCE of the parts from one on; of a
 * tile on the diagonal only those that are above it. */
INLINE void tile_parts(double (*lane)[DL_GRAM_MOST][LANES],
	const float *const *x, const float *const *y, int diagonal, int part,
	size_t n)
{
	wide sum[TILE][TILE][ONCE];

#pragma GCC unroll 4
	for (int i = 0; i < TILE; i++)
#pragma GCC unroll 4
		for (int j = 0; j < TILE; j++)
			memcpy(sum[i][j], lane[i][j] + part * WIDE,
				sizeof sum[i][j]);
	for (size_t at = (size_t)(part * WIDE); at + LANES <= n + part * WIDE;
		at += LANES)
#pragma GCC unroll 2
		for (int k = 0; k < ONCE; k++) {
			wide v[TILE];

#pragma GCC unroll 4
			for (int j = 0; j < TILE; j++)
				v[j] = widen(y[j] + at + k * WIDE);
#pragma GCC unroll 4
			for (int i = 0; i < TILE; i++) {
				wide u = diagonal ? v[i]
						  : widen(x[i] + at + k * WIDE);

#pragma GCC unroll 4
				for (int j = diagonal ? i : 0; j < TILE; j++)
					sum[i][j][k] = add_product(
						sum[i][j][k], u, v[j]);
			}
		}
#pragma GCC unroll 4
	for (int i = 0; i < TILE; i++)
#pragma GCC unroll 4
		for (int j = 0; j < TILE; j++)
			memcpy(lane[i][j] + part * WIDE, sum[i][j],
				sizeof sum[i][j]);
}

INLINE void tile(double (*lane)[DL_GRAM_MOST][LANES], const float *const *x,
	const float *const *y, int diagonal, size_t n)
{
	for (int part = 0; part < PARTS; part += ONCE)
		tile_parts(lane, x, y, diagonal, part, n);
	for (size_t at = n / LANES * LANES; at < n; at++)
		for (int i = 0; i < TILE; i++)
			for (int j = 0; j < TILE; j++)
				lane[i][j][at % LANES] +=
					(double)x[i][at] * (double)y[j][at];
}

static void gram(double (*lane)[DL_GRAM_MOST][LANES], const float *const *x,
	size_t m, size_t n)
{
	for (size_t i = 0; i < m; i += TILE)
		for (size_t j = i; j < m; j += TILE) {
			double(*corner)[DL_GRAM_MOST][LANES] =
				(void *)&lane[i][j];

			if (i == j)
				tile(corner, x + i, x + j, 1, n);
			else
				tile(corner, x + i, x + j, 0, n);
		}
}

static void accumulate(
	double *sum, const double *c, const float *const *x, size_t m, size_t n)
{
	size_t i = 0;

	for (; m && i + LANES <= n; i += LANES) {
		wide v[PARTS];

		memcpy(v, sum + i, sizeof v);
		for (size_t j = 0; j < m; j++) {
			__builtin_prefetch(x[j] + i + AHEAD);
#pragma GCC unroll 8
			for (int k = 0; k < PARTS; k++)
				v[k] += c[j] * widen(x[j] + i + k * WIDE);
		}
		memcpy(sum + i, v, sizeof v);
	}
	for (; i < n; i++)
		for (size_t j = 0; j < m; j++)
			sum[i] += c[j] * (double)x[j][i];
}

static void narrow(float *out, const double *x, size_t n)
{
	size_t i = 0;

	for (; i + WIDE <= n; i += WIDE) {
		half v = narrowed(load_wide(x + i));

		memcpy(out + i, &v, sizeof v);
	}
	for (; i < n; i++)
		out[i] = (float)x[i];
}

/*
 * The f32 kernels: each formula is written once, for a vector of which k
 * elements are there; loops call it with k constant and then for the rest.
 */
INLINE single load(const float *x, size_t k)
{
	single v = {0};

	memcpy(&v, x, k * sizeof *x);
	return v;
}

INLINE void store(float *out, single v, size_t k)
{
	memcpy(out, &v, k * sizeof *out);
}

INLINE void add_part(float *sum, float c, const float *x, size_t k)
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

INLINE void descend_part(float *next, const float *theta, const float *update,
	float lr, size_t k)
{
	single g = -load(update, k);

	store(next, load(theta, k) - lr * g, k);
}

static void descend(float *next, const float *theta, const float *update,
	float lr, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		descend_part(next + i, theta + i, update + i, lr, SINGLES);
	descend_part(next + i, theta + i, update + i, lr, n - i);
}

INLINE void momentum_part(float *next, const float *theta, float *b,
	const float *update, float lr, float mu, size_t k)
{
	single g = -load(update, k), v = mu * load(b, k) + g;

	store(b, v, k);
	store(next, load(theta, k) - lr * v, k);
}

static void momentum(float *next, const float *theta, float *b,
	const float *update, float lr, float mu, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		momentum_part(next + i, theta + i, b + i, update + i, lr, mu,
			SINGLES);
	momentum_part(next + i, theta + i, b + i, update + i, lr, mu, n - i);
}

INLINE void nesterov_part(float *next, const float *theta, float *b,
	const float *update, float lr, float mu, size_t k)
{
	single g = -load(update, k), v = mu * load(b, k) + g;

	store(b, v, k);
	store(next, load(theta, k) - lr * (g + mu * v), k);
}

static void nesterov(float *next, const float *theta, float *b,
	const float *update, float lr, float mu, size_t n)
{
	size_t i = 0;

	for (; i + SINGLES <= n; i += SINGLES)
		nesterov_part(next + i, theta + i, b + i, update + i, lr, mu,
			SINGLES);
	nesterov_part(next + i, theta + i, b + i, update + i, lr, mu, n - i);
}

const struct dl_kernels DL_KERNELS = {
	.square = square,
	.square_wide = square_wide,
	.dot = dot,
	.gram = gram,
	.accumulate = accumulate,
	.narrow = narrow,
	.add = add,
	.descend = descend,
	.momentum = momentum,
	.nesterov = nesterov,
};
