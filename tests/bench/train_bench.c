/*
 * How fast training is on one thread, beside what the matrix products alone
 * would allow in the same run: tokens/s of full steps, medians, with forward
 * and backward counted as 6 operations a weight of the products and token. Not
 * a test; `make bench` runs it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "train/adamw.h"
#include "train/gemm.h"
#include "train/gradient.h"

enum { TRIES = 25, SIDE = 512, BATCH = 12 };

static const struct dl_config config = {.layers = 4,
	.heads = 4,
	.kv_heads = 4,
	.width = 128,
	.inner = 344,
	.vocab = 256,
	.context = 64,
	.eps = 1e-5,
	.theta = 10000};

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *x)
{
	qsort(x, TRIES, sizeof(*x), by_size);
	return x[TRIES / 2];
}

/* Operations a second of a square product. */
static double product(void)
{
	size_t n = SIDE;
	float *x = dl_big_alloc(3 * n * n * sizeof(float));
	double rate[TRIES];

	for (int i = 0; i < TRIES; i++) {
		int64_t start = dl_now();

		dl_gemm_nt(n, n, n, x, n, x + n * n, n, 0, x + 2 * n * n, n);
		rate[i] =
			2e9 * (double)(n * n * n) / (double)(dl_now() - start);
	}
	dl_big_free(x, 3 * n * n * sizeof(float));
	return median(rate);
}

/* Tokens a second. */
static double train(const struct dl_llama *m)
{
	struct dl_adamw_options o = DL_ADAMW_DEFAULTS;
	struct dl_gradient *g = dl_gradient_new(m, NULL, BATCH);
	float *values = dl_big_alloc(m->size * sizeof(float));
	uint16_t ids[BATCH * 65];
	struct dl_batch b = {ids, BATCH, config.context};
	struct dl_rng r = {1, 0};
	struct dl_adamw a;
	double rate[TRIES];

	dl_adamw_init(&a, m, &o);
	dl_llama_randomise(m, 1, values);
	for (size_t i = 0; i < BATCH * 65; i++)
		ids[i] = (uint16_t)dl_rng_below(&r, config.vocab);
	for (int i = 0; i < TRIES; i++) {
		int64_t start = dl_now();

		dl_gradient_run(g, values, &b);
		dl_adamw_update(
			&a, NULL, (uint64_t)i, values, dl_gradient_values(g));
		rate[i] = 1e9 * BATCH * 64 / (double)(dl_now() - start);
	}
	dl_adamw_release(&a);
	dl_big_free(values, m->size * sizeof(float));
	dl_gradient_free(g);
	return median(rate);
}

int main(void)
{
	struct dl_llama m;
	double tokens, limit;

	dl_llama_init(&m, &config);
	tokens = train(&m);
	limit = product() /
		(6 * (double)(m.size - config.vocab * config.width));
	printf("#what\ttokens/s\tof the limit\n");
	printf("train\t%.0f\t%.2f\n", tokens, tokens / limit);
	printf("products alone\t%.0f\t1\n", limit);
	dl_llama_release(&m);
	return 0;
}
