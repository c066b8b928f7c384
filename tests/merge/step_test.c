/* A merge and its step in one pass, against one after the other. */
#include "merge/step.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fixture.h"
#include "merge/gram.h"
#include "../tap.h"

static const struct dl_outer outer = {0.7f, 0.9f, 1};

/* Values, momentum and the update of a fixture's fragment. */
struct state {
	size_t n;
	float *theta, *momentum, *update;
};

static void state_init(struct state *s, size_t n)
{
	s->n = n;
	s->theta = dl_alloc_array(3 * n, sizeof *s->theta);
	s->momentum = s->theta + n;
	s->update = s->theta + 2 * n;
	for (size_t i = 0; i < 3 * n; i++)
		s->theta[i] = (float)(i % 1009) / 1009 - 0.5f;
}

static void state_release(struct state *s)
{
	free(s->theta);
}

static int same(const struct state *a, const struct state *b)
{
	return !memcmp(a->theta, b->theta, 2 * a->n * sizeof *a->theta);
}

/* The products as they are gathered by who takes two deltas at a time. */
static double *products_of(const struct fixture *f)
{
	double *product =
		dl_alloc_array(f->nsegments * f->m * f->m, sizeof *product);

	for (size_t k = 0; k < f->nsegments * f->m * f->m; k++) {
		const struct dl_segment *s = &f->segments[k / (f->m * f->m)];
		for (size_t at = 0, n; at < s->n; at += n) {
			struct dl_codes x, y;

			n = s->n - at < DL_MERGE_BLOCK ? s->n - at
						       : DL_MERGE_BLOCK;
			x = fixture_find(f, k / f->m % f->m, s->offset + at, n);
			y = fixture_find(f, k % f->m, s->offset + at, n);
			product[k] += dl_gram_block(&x, &y, n);
		}
	}
	return product;
}

static void copy_block(void *ctx, size_t offset, size_t n, const float *next)
{
	struct state *s = ctx;

	memcpy(s->theta + offset, next, n * sizeof *next);
}

/* What is made with those products, in the way of that number. */
static int step(const struct fixture *f, struct dl_pool *pool,
	const double *products, int way, struct state *got)
{
	struct state before;
	struct dl_step s = {.outer = outer,
		.theta = got->theta,
		.momentum = got->momentum,
		.next = got->theta};
	int code;

	state_init(&before, f->n);
	if (way)
		s.theta = before.theta;
	if (way == 1)
		s.update = got->update;
	if (way == 2) {
		s.made = copy_block;
		s.ctx = got;
		s.next = NULL;
	}
	code = dl_merge_step(pool, f->segments, f->nsegments, f->from, f->m,
		products, &s, NULL);
	state_release(&before);
	return code;
}

static void test_same(
	enum fixture_kind kind, size_t m, int coded, struct dl_pool *pool)
{
	static const char *const ways[] = {
		"in place", "elsewhere", "a block at a time"};
	struct state want, got;
	struct fixture f;
	double *product;
	int code;

	fixture_init(&f, kind, m, 40 + kind);
	if (coded)
		fixture_encode_all(&f);
	product = products_of(&f);
	state_init(&want, f.n);
	code = dl_merge_fragment(NULL, f.segments, f.nsegments, f.from, m,
		want.update, NULL, NULL);
	if (!code)
		dl_outer_step(NULL, &outer, f.segments, f.nsegments,
			want.update, want.theta, want.momentum);
	for (int way = 0; way < 3; way++) {
		int good = 1;

		for (int known = 0; known < 2; known++) {
			state_init(&got, f.n);
			good &= step(&f, pool, known ? product : NULL, way,
					&got) == code;
			good &= same(&want, &got);
			state_release(&got);
		}
		ok(good, "%s, %zu learners%s, %s: the same bits",
			fixture_name[kind], m, coded ? ", codes" : "",
			ways[way]);
	}
	state_release(&want);
	free(product);
	fixture_release(&f);
}

/* The check can fail, and the products count. */
static void test_other_products(void)
{
	struct state want, got;
	struct fixture f;
	double *product;

	fixture_init(&f, NORMAL, 3, 1);
	product = products_of(&f);
	state_init(&want, f.n);
	state_init(&got, f.n);
	step(&f, NULL, product, 0, &want);
	for (size_t i = 0; i < f.nsegments * 9; i++)
		product[i] *= 1 + (double)(i % 2);
	step(&f, NULL, product, 0, &got);
	ok(!same(&want, &got), "other products, other bits");
	free(product);
	state_release(&want);
	state_release(&got);
	fixture_release(&f);
}

static void test_failure(float bad, const char *what)
{
	struct state want, got;
	struct fixture f;
	double *product;
	int codes = 0;

	fixture_init(&f, NORMAL, 3, 1);
	for (int j = 0; j < 3; j++) {
		f.delta[j][f.n / 2] = bad;
		f.from[j].scale = 4;
	}
	product = products_of(&f);
	state_init(&want, f.n);
	state_init(&got, f.n);
	for (int way = 0; way < 3; way++)
		codes += step(&f, NULL, way ? product : NULL, way, &got);
	ok(codes == 3 * DL_DATA && same(&want, &got),
		"%s: refused, nothing has changed", what);
	free(product);
	state_release(&want);
	state_release(&got);
	fixture_release(&f);
}

int main(void)
{
	static const size_t learners[] = {1, 5, DL_GRAM_MOST + 1};
	struct dl_pool *pool = dl_pool_new(3);

	for (int kind = 0; kind < FIXTURES; kind++)
		for (size_t i = 0; i < 6; i++)
			test_same((enum fixture_kind)kind, learners[i / 2],
				i % 2, pool);
	test_other_products();
	test_failure((float)NAN, "no number");
	test_failure(FLT_MAX, "overflow");
	dl_pool_free(pool);
	return done_testing();
}
