#include "merge/kernels.h"

#include "tensor/wide.h"

/* DL_KERNELS names the level's table. */
enum { LANES = DL_LANES, PARTS = LANES / WIDE, SINGLES = 2 * WIDE };
/* Elements: deltas are fetched before they are wanted, since of many that are
 * read at once the CPU does not see them coming. */
enum { AHEAD = 512 };
/* A tile of products, as many as registers hold. */
enum { ROWS = WIDE == 8 ? 4 : 2, COLUMNS = DL_GRAM_TILE };

typedef float single __attribute__((vector_size(SINGLES * sizeof(float))));
typedef int32_t magnitude
	__attribute__((vector_size(SINGLES * sizeof(int32_t))));

INLINE half narrowed(wide v)
{
#if defined __AVX512F__
	return (half)_mm512_cvtpd_ps((__m512d)v);
#elif defined __AVX2__
	return (half)_mm256_cvtpd_ps((__m256d)v);
#else
	return __builtin_convertvector(v, half);
#endif
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

/* No early end, so that it is done many at a time. */
static int finite(const float *x, size_t n)
{
	magnitude bad = {0};
	int any = 0;

	for (size_t i = 0; i < n; i += SINGLES) {
		magnitude v;

		memcpy(&v, x + i, sizeof v);
		bad |= (v & 0x7fffffff) >= 0x7f800000;
	}
	for (int i = 0; i < SINGLES; i++)
		any |= bad[i];
	return !any;
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
#elif defined __FMA__
	return (wide)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)sum);
#else
	return sum + x * y;
#endif
}

/*
 * The products of the x's with the y's, in one part of the lanes; of a tile
 * that the diagonal goes through only those above it, where x[0] is y[below].
 * Each delta is fetched once, by a part of its tile on the diagonal.
 */
INLINE void tile_part(double (*lane)[DL_GRAM_MOST][LANES],
	const float *const *x, const float *const *y, int below, int part,
	size_t n)
{
	wide sum[ROWS][COLUMNS];

#pragma GCC unroll 4
	for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
		for (int j = 0; j < COLUMNS; j++)
			sum[i][j] = load_wide(lane[i][j] + part * WIDE);
	for (size_t at = (size_t)(part * WIDE); at + LANES <= n + part * WIDE;
		at += LANES) {
		wide v[COLUMNS];

#pragma GCC unroll 4
		for (int j = below < 0 ? 0 : below; j < COLUMNS; j++) {
			if (!below && j % PARTS == part)
				__builtin_prefetch(y[j] + at + AHEAD);
			v[j] = widen(y[j] + at);
		}
#pragma GCC unroll 4
		for (int i = 0; i < ROWS; i++) {
			wide u = below < 0 ? widen(x[i] + at) : v[i + below];

#pragma GCC unroll 4
			for (int j = below < 0 ? 0 : i + below; j < COLUMNS;
				j++)
				sum[i][j] = add_product(sum[i][j], u, v[j]);
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
		for (int j = 0; j < COLUMNS; j++)
			store_wide(lane[i][j] + part * WIDE, sum[i][j]);
}

INLINE void tile(double (*lane)[DL_GRAM_MOST][LANES], const float *const *x,
	const float *const *y, int below, size_t n)
{
	for (int part = 0; part < PARTS; part++)
		tile_part(lane, x, y, below, part, n);
	for (size_t at = n / LANES * LANES; at < n; at++)
		for (int i = 0; i < ROWS; i++)
			for (int j = 0; j < COLUMNS; j++)
				lane[i][j][at % LANES] +=
					(double)x[i][at] * (double)y[j][at];
}

static void gram(double (*lane)[DL_GRAM_MOST][LANES], const float *const *x,
	size_t m, size_t n)
{
	for (size_t i = 0; i < m; i += ROWS)
		for (size_t j = i / COLUMNS * COLUMNS; j < m; j += COLUMNS) {
			double(*corner)[DL_GRAM_MOST][LANES] =
				(void *)&lane[i][j];

			if (i < j)
				tile(corner, x + i, x + j, -1, n);
			else if (i == j)
				tile(corner, x + i, x + j, 0, n);
			else
				tile(corner, x + i, x + j, ROWS % COLUMNS, n);
		}
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
	.finite = finite,
	.gram = gram,
	.narrow = narrow,
	.add = add,
	.descend = descend,
	.momentum = momentum,
	.nesterov = nesterov,
};
