/* The model's mathematics and the optimizer against slow references. */
#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "base/rng.h"
#include "reference.h"
#include "tests/tap.h"
#include "train/adamw.h"
#include "train/blas.h"
#include "train/gradient.h"
#include "train/kernels.h"

/* Shared keys, several blocks of queries, rows and lines that do not divide. */
static const struct dl_config grouped = {.layers = 2,
	.heads = 4,
	.kv_heads = 2,
	.width = 24,
	.inner = 37,
	.vocab = 29,
	.context = 150,
	.eps = 1e-5,
	.theta = 100};
static const struct dl_config tied = {.layers = 1,
	.heads = 2,
	.kv_heads = 2,
	.width = 8,
	.inner = 12,
	.vocab = 11,
	.context = 9,
	.eps = 1e-5,
	.theta = 10000,
	.tied = 1};

struct fixture {
	struct dl_llama m;
	struct dl_batch batch;
	uint16_t *ids;
	float *values;
	double *exact, *grad; /* the same values, their gradient */
	double loss;
};

static void setup(struct fixture *f, const struct dl_config *c,
	size_t sequences, size_t length)
{
	struct dl_rng r = {7, 0};
	size_t n = sequences * (length + 1);

	dl_llama_init(&f->m, c);
	f->ids = dl_alloc_array(n, sizeof(*f->ids));
	for (size_t i = 0; i < n; i++)
		f->ids[i] = (uint16_t)dl_rng_below(&r, c->vocab);
	f->batch = (struct dl_batch){f->ids, sequences, length};
	f->values = dl_alloc_array(f->m.size, sizeof(*f->values));
	f->exact = dl_alloc_array(f->m.size, sizeof(*f->exact));
	f->grad = dl_alloc_array(f->m.size, sizeof(*f->grad));
	/* Larger than at the start of training, so that nothing is linear. */
	for (size_t i = 0; i < f->m.size; i++) {
		f->values[i] = (float)(0.3 * dl_rng_normal(&r));
		f->exact[i] = f->values[i];
	}
	f->loss = reference_loss(&f->m, f->exact, &f->batch, f->grad);
}

static void teardown(struct fixture *f)
{
	dl_llama_release(&f->m);
	free(f->ids);
	free(f->values);
	free(f->exact);
	free(f->grad);
}

/* |a - b| / |b| over all numbers. */
static double distance(const float *a, const double *b, size_t n)
{
	double d = 0, s = 0;

	for (size_t i = 0; i < n; i++) {
		d += (a[i] - b[i]) * (a[i] - b[i]);
		s += b[i] * b[i];
	}
	return sqrt(d / s);
}

static void test_reference(void)
{
	struct fixture f;
	double worst = 0;

	setup(&f, &tied, 2, 9);
	for (size_t i = 0; i < f.m.size; i++) {
		const double step = 1e-5;
		double x = f.exact[i], up, down;

		f.exact[i] = x + step;
		up = reference_loss(&f.m, f.exact, &f.batch, NULL);
		f.exact[i] = x - step;
		down = reference_loss(&f.m, f.exact, &f.batch, NULL);
		f.exact[i] = x;
		worst = fmax(worst, fabs((up - down) / (2 * step) - f.grad[i]) /
					    (1 + fabs(f.grad[i])));
	}
	ok(worst < 1e-7, "the reference agrees with finite differences (%.1e)",
		worst);
	teardown(&f);
}

static void check_pass(const char *what, const struct dl_config *c,
	size_t sequences, size_t length)
{
	struct fixture f;
	double worst = 0, loss;

	setup(&f, c, sequences, length);
	struct dl_pass *p = dl_pass_new(&f.m, sequences);
	float *grad = dl_alloc_array(f.m.size, sizeof(*grad));

	loss = dl_pass_loss(p, f.values, &f.batch);
	ok(fabs(loss - f.loss) < 1e-5 * f.loss, "%s: the loss (%.6f, %.6f)",
		what, loss, f.loss);
	loss = dl_pass_gradient(p, f.values, &f.batch, 1, grad);
	ok(fabs(loss - f.loss) < 1e-5 * f.loss, "%s: the loss again", what);
	for (size_t i = 0; i < f.m.n_params; i++) {
		const struct dl_llama_param *q = &f.m.params[i];
		double d = distance(grad + q->at, f.grad + q->at, q->count);

		if (d > 2e-5)
			printf("# %s is off by %.1e\n", q->name, d);
		worst = fmax(worst, d);
	}
	ok(worst < 2e-5, "%s: every tensor's gradient (%.1e)", what, worst);
	free(grad);
	dl_pass_free(p);
	teardown(&f);
}

static void test_threads(void)
{
	struct fixture f;
	float *first;
	double loss;

	setup(&f, &tied, 7, 9);
	first = dl_alloc_array(f.m.size, sizeof(*first));
	for (unsigned threads = 1; threads < 4; threads++) {
		struct dl_pool *pool = dl_pool_new(threads);
		struct dl_gradient *g = dl_gradient_new(&f.m, pool, NULL, 7);
		const float *grad = dl_gradient_values(g);

		loss = dl_gradient_run(g, f.values, &f.batch) * 7 * 9;
		memcpy(first, grad, f.m.size * sizeof(float));
		for (size_t i = 0; i < f.m.size; i++)
			first[i] *= 7 * 9;
		ok(fabs(loss - f.loss) < 1e-5 * f.loss &&
				distance(first, f.grad, f.m.size) < 2e-5,
			"%u thread(s) give the gradient", threads);
		memcpy(first, grad, f.m.size * sizeof(float));
		dl_gradient_run(g, f.values, &f.batch);
		ok(!memcmp(first, grad, f.m.size * sizeof(float)),
			"%u thread(s) give it twice, bit for bit", threads);
		dl_gradient_free(g);
		dl_pool_free(pool);
	}
	free(first);
	teardown(&f);
}

/* AdamW as its paper writes it, in double. */
struct plain {
	double *x, *m, *v;
	unsigned t;
};

static void plain_update(struct plain *s, const struct dl_adamw *a,
	const float *grad, double rate)
{
	const struct dl_adamw_options *o = &a->options;
	double length = 0, clip;

	for (size_t i = 0; i < a->m->size; i++)
		length += (double)grad[i] * grad[i];
	length = sqrt(length);
	clip = length > o->clip ? o->clip / length : 1;
	s->t++;
	for (size_t p = 0; p < a->m->n_params; p++) {
		const struct dl_llama_param *q = &a->m->params[p];

		for (size_t i = q->at; i < q->at + q->count; i++) {
			double g = grad[i] * clip;

			s->m[i] = o->beta1 * s->m[i] + (1 - o->beta1) * g;
			s->v[i] = o->beta2 * s->v[i] + (1 - o->beta2) * g * g;
			if (q->rank > 1)
				s->x[i] -= rate * o->decay * s->x[i];
			s->x[i] -= rate * s->m[i] / (1 - pow(o->beta1, s->t)) /
				   (sqrt(s->v[i] / (1 - pow(o->beta2, s->t))) +
					   o->eps);
		}
	}
}

static void test_adamw(void)
{
	struct fixture f;
	struct dl_adamw a;
	struct dl_adamw_options o = DL_ADAMW_DEFAULTS;
	struct dl_rng r = {11, 0};
	struct plain s = {0};
	float *grad;

	setup(&f, &tied, 1, 9);
	o.warmup = 4;
	o.steps = 20;
	dl_adamw_init(&a, &f.m, &o);
	s.x = f.exact;
	s.m = dl_alloc_array(f.m.size, sizeof(double));
	s.v = dl_alloc_array(f.m.size, sizeof(double));
	grad = dl_alloc_array(f.m.size, sizeof(*grad));
	for (uint64_t clock = 0; clock < 20; clock++) {
		/* Half of the gradients are long enough to be clipped. */
		for (size_t i = 0; i < f.m.size; i++)
			grad[i] = (float)(dl_rng_normal(&r) *
					  (clock % 2 ? 1e-3 : 1));
		plain_update(&s, &a, grad, dl_adamw_rate(&a, clock));
		dl_adamw_update(&a, NULL, clock, f.values, grad);
	}
	ok(distance(f.values, f.exact, f.m.size) < 1e-6,
		"AdamW agrees with its definition (%.1e)",
		distance(f.values, f.exact, f.m.size));
	grad[3] = NAN;
	memcpy(grad + 4, f.values, 4 * sizeof(float));
	ok(isnan(dl_adamw_update(&a, NULL, 20, f.values, grad)) &&
			a.updates == 20 &&
			!memcmp(grad + 4, f.values, 4 * sizeof(float)),
		"a gradient that is not finite changes nothing");
	free(grad);
	free(s.m);
	free(s.v);
	dl_adamw_release(&a);
	teardown(&f);
}

static void test_rate(void)
{
	struct dl_adamw a = {.options = DL_ADAMW_DEFAULTS};

	a.options.rate = 1;
	a.options.warmup = 10;
	a.options.steps = 110;
	ok(fabs(dl_adamw_rate(&a, 0) - 0.1) < 1e-12 &&
			fabs(dl_adamw_rate(&a, 9) - 1) < 1e-12,
		"the rate warms up");
	ok(fabs(dl_adamw_rate(&a, 60) - 0.55) < 1e-12 &&
			fabs(dl_adamw_rate(&a, 110) - 0.1) < 1e-12 &&
			fabs(dl_adamw_rate(&a, 5000) - 0.1) < 1e-12,
		"it falls by a cosine to a tenth and stays there");
	a.since = 60;
	ok(fabs(dl_adamw_rate(&a, 60) - 0.055) < 1e-12,
		"after a restart it warms up again");
	a.since = 0;
	a.options.steps = 0;
	ok(fabs(dl_adamw_rate(&a, 1000000) - 1) < 1e-12,
		"without an end it does not fall");
}

static void test_levels(void)
{
#ifdef __x86_64__
	static const struct dl_train_kernels *const tables[] = {
		&dl_train_kernels_baseline, &dl_train_kernels_avx2,
		&dl_train_kernels_avx512};
	float gu[2 * 37], h[37], s;

	for (size_t i = 0; i < 2 * 37; i++)
		gu[i] = ((float)i - 18) * (i < 8 ? 10 : 1);
	for (size_t t = 0; t <= dl_cpu_level(); t++) {
		double worst = 0;

		tables[t]->swiglu(gu, 1, 37, h);
		for (size_t i = 0; i < 37; i++) {
			double x =
				gu[i] / (1 + exp(-(double)gu[i])) * gu[37 + i];

			worst = fmax(worst, fabs(h[i] - x) / (1e-30 + fabs(x)));
		}
		ok(worst < 5e-5, "%s: silu (%.1e)", dl_cpu_name(t), worst);
		gu[0] = NAN;
		tables[t]->swiglu(gu, 1, 37, h);
		tables[t]->softmax(gu, 1, 8, 8, 1, &s);
		ok(isnan(h[0]) && isnan(s), "%s: NaN stays NaN",
			dl_cpu_name(t));
		for (size_t i = 0; i < 8; i++)
			gu[i] = ((float)i - 18) * 10;
	}
#else
	skip("one level on this CPU");
#endif
}

int main(void)
{
	struct dl_err e;

	ok(!dl_blas_load(&e), "BLAS is loaded");
	test_reference();
	check_pass("tied", &tied, 3, 9);
	check_pass("grouped", &grouped, 2, 150);
	check_pass("grouped, in parts and short", &grouped, 5, 67);
	test_threads();
	test_adamw();
	test_rate();
	test_levels();
	return done_testing();
}
