#include "train/adamw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/kernels.h"

/* Numbers a block: sums are made a block, in a fixed order, whoever runs it. */
enum { BLOCK = 1 << 15 };

static size_t blocks(size_t n)
{
	return (n + BLOCK - 1) / BLOCK;
}

void dl_adamw_init(struct dl_adamw *a, const struct dl_llama *m,
	const struct dl_adamw_options *options)
{
	memset(a, 0, sizeof(*a));
	a->m = m;
	a->options = *options;
	a->first = dl_big_alloc(m->size * sizeof(float));
	a->second = dl_big_alloc(m->size * sizeof(float));
	a->sums = dl_alloc_array(blocks(m->size), sizeof(*a->sums));
}

void dl_adamw_release(struct dl_adamw *a)
{
	if (!a->m)
		return;
	dl_big_free(a->first, a->m->size * sizeof(float));
	dl_big_free(a->second, a->m->size * sizeof(float));
	free(a->sums);
	memset(a, 0, sizeof(*a));
}

void dl_adamw_restart(struct dl_adamw *a, uint64_t clock)
{
	memset(a->first, 0, a->m->size * sizeof(float));
	memset(a->second, 0, a->m->size * sizeof(float));
	a->updates = 0;
	a->since = clock;
}

double dl_adamw_rate(const struct dl_adamw *a, uint64_t clock)
{
	const struct dl_adamw_options *o = &a->options;
	double rate = o->rate, at = 0;
	uint64_t warm = clock < a->since ? 0 : clock - a->since;

	if (clock > o->warmup && o->steps > o->warmup)
		at = fmin(1, (double)(clock - o->warmup) /
				     (double)(o->steps - o->warmup));
	rate *= o->floor + (1 - o->floor) * 0.5 * (1 + cos(M_PI * at));
	if (warm < o->warmup)
		rate *= (double)(warm + 1) / (double)o->warmup;
	return rate;
}

struct sums {
	const float *x;
	size_t n;
	double *sum; /* a block */
};

static void sum_block(void *ctx, size_t i)
{
	struct sums *s = ctx;
	size_t at = i * BLOCK, left = s->n - at;

	s->sum[i] = dl_train_kernels()->sum_squares(
		s->x + at, left < BLOCK ? left : BLOCK);
}

static double norm(
	const struct dl_adamw *a, struct dl_pool *pool, const float *x)
{
	struct sums s = {x, a->m->size, a->sums};
	double total = 0;

	dl_pool_run(pool, blocks(s.n), sum_block, &s);
	for (size_t i = 0; i < blocks(s.n); i++)
		total += s.sum[i];
	return sqrt(total);
}

struct update {
	struct dl_adamw *a;
	float *values;
	const float *grad;
	struct dl_adamw_step step;
	double rate;
};

static void update_param(void *ctx, size_t i)
{
	struct update *u = ctx;
	const struct dl_llama_param *p = &u->a->m->params[i];
	struct dl_adamw_step step = u->step;

	if (p->rank > 1)
		step.keep = (float)(1 - u->rate * u->a->options.decay);
	dl_train_kernels()->adamw(u->values + p->at, u->grad + p->at,
		u->a->first + p->at, u->a->second + p->at, p->count, &step);
}

double dl_adamw_update(struct dl_adamw *a, struct dl_pool *pool, uint64_t clock,
	float *values, const float *grad)
{
	const struct dl_adamw_options *o = &a->options;
	double length = norm(a, pool, grad), t;
	struct update u = {a, values, grad, .rate = dl_adamw_rate(a, clock)};

	if (!isfinite(length))
		return length;
	t = (double)++a->updates;
	u.step = (struct dl_adamw_step){
		.scale = (float)(length > o->clip ? o->clip / length : 1),
		.beta1 = (float)o->beta1,
		.beta2 = (float)o->beta2,
		.rate = (float)(u.rate / (1 - pow(o->beta1, t))),
		.root = (float)(1 / sqrt(1 - pow(o->beta2, t))),
		.eps = (float)o->eps,
		.keep = 1,
	};
	dl_pool_run(pool, a->m->n_params, update_param, &u);
	return length;
}
