/*
 * How fast training is, beside what the matrix products alone would allow, with
 * forward and backward counted as 6 operations a weight of the products and
 * token; and beside PyTorch where it is installed. The memory is what each has
 * held at most.
 */
#include <sys/resource.h>

#include "base/mem.h"
#include "base/rng.h"
#include "bench.h"
#include "gpt.h"
#include "train/adamw.h"
#include "train/blas.h"
#include "train/gemm.h"
#include "train/gradient.h"

enum { TURNS = 15, SIDE = 512, BATCH = 16, CONTEXT = 128 };

static const struct dl_config config = {.layers = 4,
	.heads = 4,
	.kv_heads = 4,
	.width = 128,
	.inner = 344,
	.vocab = 256,
	.context = CONTEXT,
	.eps = 1e-5,
	.theta = 10000};
static const struct bench bench = {
	.unit = "tokens/s", .amount = BATCH * CONTEXT, .turns = TURNS};

struct train {
	struct dl_llama m;
	struct dl_pool *pool;
	struct dl_gradient *g;
	struct dl_adamw a;
	struct gpt *other;
	float *values, *square;
	uint16_t ids[BATCH * (CONTEXT + 1)];
	uint64_t step;
};

/* A square product, as long as it would take for the tokens of a step. */
static void product(void *ctx)
{
	const size_t n = SIDE;
	const double made = 2 * (double)(n * n * n);
	struct train *t = ctx;
	size_t weights = t->m.size - config.vocab * config.width;
	double from = bench_now();

	dl_gemm_nt(n, n, n, t->square, n, t->square + n * n, n, 0,
		t->square + 2 * n * n, n);
	bench_took((bench_now() - from) * 6 * (double)weights * bench.amount /
		   made);
}

static void step(void *ctx)
{
	struct train *t = ctx;
	const struct dl_batch b = {t->ids, BATCH, CONTEXT};

	dl_gradient_run(t->g, t->values, &b);
	dl_adamw_update(
		&t->a, t->pool, t->step++, t->values, dl_gradient_values(t->g));
}

static void other_step(void *ctx)
{
	struct train *t = ctx;

	bench_took(gpt_step(t->other));
}

static void init(struct train *t, unsigned threads)
{
	const struct dl_adamw_options o = DL_ADAMW_DEFAULTS;
	struct dl_rng r = {1, 0};

	dl_llama_init(&t->m, &config);
	t->pool = dl_pool_new(threads);
	t->g = dl_gradient_new(&t->m, t->pool, NULL, BATCH);
	t->values = dl_big_alloc(t->m.size * sizeof(float));
	dl_adamw_init(&t->a, &t->m, &o);
	dl_llama_randomise(&t->m, 1, t->values);
	for (size_t i = 0; i < sizeof t->ids / sizeof *t->ids; i++)
		t->ids[i] = (uint16_t)dl_rng_below(&r, config.vocab);
}

static void release(struct train *t)
{
	dl_adamw_release(&t->a);
	dl_big_free(t->values, t->m.size * sizeof(float));
	dl_gradient_free(t->g);
	dl_pool_free(t->pool);
	dl_llama_release(&t->m);
}

/* The most that this process held, in MB. */
static double memory(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss * 1024e-6;
}

static void beside_products(struct train *t)
{
	const size_t square = 3 * SIDE * SIDE * sizeof(float);

	step(t);
	t->square = dl_big_alloc(square);
	bench_compare(&bench, step, product, t,
		"train step, 1t, %.0f MB, beside products", memory());
	dl_big_free(t->square, square);
}

static void beside_pytorch(struct train *t, unsigned threads)
{
	t->other = gpt_new(threads);
	if (!t->other)
		return;
	bench_compare(&bench, step, other_step, t,
		"train step, %ut, beside PyTorch in %.0f MB", threads,
		gpt_memory(t->other) * 1e-6);
	gpt_free(t->other);
}

int main(void)
{
	struct train t = {.step = 0};
	struct dl_err e;

	bench_need(!dl_blas_load(&e), e.text);
	for (unsigned threads = 1; threads <= 2; threads++) {
		init(&t, threads);
		if (threads == 1)
			beside_products(&t);
		beside_pytorch(&t, threads);
		release(&t);
	}
	return 0;
}
