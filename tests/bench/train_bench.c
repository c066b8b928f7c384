/*
 * How fast training is on one thread, beside what the matrix products alone
 * would allow, with forward and backward counted as 6 operations a weight of
 * the products and token.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "bench.h"
#include "train/adamw.h"
#include "train/gemm.h"
#include "train/gradient.h"

enum {
	TURNS = 15,
	SIDE = 512,
	BATCH = 12,
	CONTEXT = 64,
	TOKENS = BATCH * CONTEXT
};

static const struct dl_config config = {.layers = 4,
	.heads = 4,
	.kv_heads = 4,
	.width = 128,
	.inner = 344,
	.vocab = 256,
	.context = CONTEXT,
	.eps = 1e-5,
	.theta = 10000};

struct train {
	struct dl_llama m;
	struct dl_gradient *g;
	struct dl_adamw a;
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
	bench_took((bench_now() - from) * 6 * (double)weights * TOKENS / made);
}

static void step(void *ctx)
{
	struct train *t = ctx;
	const struct dl_batch b = {t->ids, BATCH, CONTEXT};

	dl_gradient_run(t->g, t->values, &b);
	dl_adamw_update(
		&t->a, NULL, t->step++, t->values, dl_gradient_values(t->g));
}

int main(void)
{
	const struct bench b = {
		.unit = "tokens/s", .amount = TOKENS, .turns = TURNS};
	const size_t square = 3 * SIDE * SIDE * sizeof(float);
	struct dl_adamw_options o = DL_ADAMW_DEFAULTS;
	struct dl_rng r = {1, 0};
	struct train t = {.step = 0};

	dl_llama_init(&t.m, &config);
	t.g = dl_gradient_new(&t.m, NULL, NULL, BATCH);
	t.values = dl_big_alloc(t.m.size * sizeof(float));
	t.square = dl_big_alloc(square);
	dl_adamw_init(&t.a, &t.m, &o);
	dl_llama_randomise(&t.m, 1, t.values);
	for (size_t i = 0; i < sizeof t.ids / sizeof *t.ids; i++)
		t.ids[i] = (uint16_t)dl_rng_below(&r, config.vocab);
	bench_compare(&b, step, product, &t, "train step, 1t");
	dl_adamw_release(&t.a);
	dl_big_free(t.values, t.m.size * sizeof(float));
	dl_big_free(t.square, square);
	dl_gradient_free(t.g);
	dl_llama_release(&t.m);
	return 0;
}
