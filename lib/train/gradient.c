#include "train/gradient.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/kernels.h"

enum { BLOCK = 1 << 15 }; /* numbers summed at once */

struct worker {
	struct dl_pass *pass;
	float *grad;
	double loss;
};

struct dl_gradient {
	const struct dl_llama *m;
	struct dl_pool *pool;
	struct dl_ranks *ranks;
	size_t workers;
	struct worker *worker;
	size_t first, shares; /* the first worker's share; of how many */
	/* of the call that runs */
	const float *values;
	const struct dl_batch *batch;
};

/* Ranks may have more or fewer threads. */
static void count_shares(struct dl_gradient *g)
{
	size_t ranks = dl_ranks_count(g->ranks);
	size_t *workers = dl_alloc_array(ranks, sizeof(*workers));

	dl_ranks_gather(g->ranks, &g->workers, sizeof(g->workers), workers);
	for (size_t i = 0; i < ranks; i++) {
		if (i < dl_ranks_rank(g->ranks))
			g->first += workers[i];
		g->shares += workers[i];
	}
	free(workers);
}

struct dl_gradient *dl_gradient_new(const struct dl_llama *m,
	struct dl_pool *pool, struct dl_ranks *ranks, size_t sequences)
{
	struct dl_gradient *g = dl_alloc(sizeof(*g));
	size_t threads = dl_pool_threads(pool);

	g->m = m;
	g->pool = pool;
	g->ranks = ranks;
	g->workers = threads < sequences ? threads : sequences;
	count_shares(g);
	g->worker = dl_alloc_array(g->workers, sizeof(*g->worker));
	for (size_t i = 0; i < g->workers; i++) {
		g->worker[i].pass = dl_pass_new(
			m, (sequences + g->shares - 1) / g->shares);
		g->worker[i].grad = dl_big_alloc(m->size * sizeof(float));
	}
	return g;
}

void dl_gradient_free(struct dl_gradient *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->workers; i++) {
		dl_pass_free(g->worker[i].pass);
		dl_big_free(g->worker[i].grad, g->m->size * sizeof(float));
	}
	free(g->worker);
	free(g);
}

/* The i-th worker's share of the batch. */
static struct dl_batch share(const struct dl_gradient *g, size_t i)
{
	const struct dl_batch *b = g->batch;
	size_t first = b->sequences * (g->first + i) / g->shares;
	size_t end = b->sequences * (g->first + i + 1) / g->shares;

	return (struct dl_batch){.ids = b->ids + first * (b->length + 1),
		.sequences = end - first,
		.length = b->length};
}

static void run_worker(void *ctx, size_t i)
{
	struct dl_gradient *g = ctx;
	struct worker *w = &g->worker[i];
	struct dl_batch b = share(g, i);
	size_t tokens = g->batch->sequences * g->batch->length;

	memset(w->grad, 0, g->m->size * sizeof(float));
	w->loss = dl_pass_gradient(
		w->pass, g->values, &b, 1 / (float)tokens, w->grad);
}

static void run_loss(void *ctx, size_t i)
{
	struct dl_gradient *g = ctx;
	struct dl_batch b = share(g, i);

	g->worker[i].loss = dl_pass_loss(g->worker[i].pass, g->values, &b);
}

static void sum_block(void *ctx, size_t i)
{
	struct dl_gradient *g = ctx;
	size_t at = i * BLOCK, left = g->m->size - at;

	for (size_t w = 1; w < g->workers; w++)
		dl_train_kernels()->add(g->worker[0].grad + at,
			g->worker[w].grad + at, left < BLOCK ? left : BLOCK);
}

static double mean_loss(const struct dl_gradient *g)
{
	double sum = 0;

	for (size_t i = 0; i < g->workers; i++)
		sum += g->worker[i].loss;
	sum = dl_ranks_total(g->ranks, sum);
	return sum / (double)(g->batch->sequences * g->batch->length);
}

double dl_gradient_run(
	struct dl_gradient *g, const float *values, const struct dl_batch *b)
{
	g->values = values;
	g->batch = b;
	dl_pool_run(g->pool, g->workers, run_worker, g);
	if (g->workers > 1)
		dl_pool_run(g->pool, (g->m->size + BLOCK - 1) / BLOCK,
			sum_block, g);
	dl_ranks_sum(g->ranks, g->worker[0].grad, g->m->size);
	return mean_loss(g);
}

const float *dl_gradient_values(const struct dl_gradient *g)
{
	return g->worker[0].grad;
}

double dl_gradient_loss(
	struct dl_gradient *g, const float *values, const struct dl_batch *b)
{
	g->values = values;
	g->batch = b;
	dl_pool_run(g->pool, g->workers, run_loss, g);
	return mean_loss(g);
}
