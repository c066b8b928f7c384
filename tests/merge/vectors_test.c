/* Merging and the outer step against vectors computed elsewhere. */
#include "base/file.h"
#include "base/json.h"
#include "merge/outer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"

enum { LEARNERS = 8, LENGTH = 64, STEPS = 3, NUMBERS = 1024 };

struct numbers {
	double x[NUMBERS];
	size_t n;
};

/* One round of the file; lists of lists are kept one after another. */
struct vector {
	char kind[16];
	struct numbers base, gradients, steps, tokens, weights, mean, rda,
		nesterov;
};

/* The numbers of one value, however nested, from its first token on. */
static void read_numbers(
	struct dl_json *j, enum dl_json_token t, struct numbers *out)
{
	int depth = 0;

	out->n = 0;
	for (;; t = dl_json_next(j)) {
		if (t == DL_JSON_BAD)
			return;
		if (t == DL_JSON_NUMBER && out->n < NUMBERS &&
			!dl_json_double(j, &out->x[out->n]))
			out->n++;
		depth += t == DL_JSON_ARRAY;
		depth -= t == DL_JSON_ARRAY_END;
		if (!depth)
			return;
	}
}

static struct numbers *field(struct vector *v, const struct dl_json *j)
{
	const struct {
		const char *key;
		struct numbers *to;
	} fields[] = {
		{"base", &v->base},
		{"outer_gradients", &v->gradients},
		{"steps", &v->steps},
		{"tokens", &v->tokens},
		{"weights", &v->weights},
		{"mean", &v->mean},
		{"rda", &v->rda},
		{"nesterov_lr0.7_mu0.9_rda_applied_3_times", &v->nesterov},
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (dl_json_is(j, fields[i].key))
			return fields[i].to;
	return NULL;
}

/* One object of the list, whose brace was just read. */
static void read_vector(struct dl_json *j, struct vector *v)
{
	enum dl_json_token t;

	memset(v, 0, sizeof *v);
	while ((t = dl_json_next(j)) == DL_JSON_KEY) {
		struct numbers *to = field(v, j);
		int kind = dl_json_is(j, "kind");

		t = dl_json_next(j);
		if (to)
			read_numbers(j, t, to);
		else
			dl_json_skip(j, t);
		if (kind)
			snprintf(v->kind, sizeof v->kind, "%.*s", (int)j->len,
				j->text);
	}
}

/* The one rounding to f32; the file's figures are double. want is of outer
 * gradients, got of deltas. */
static int update_agrees(const float *got, const struct numbers *want)
{
	double most = 0;

	for (size_t i = 0; i < want->n; i++)
		most = fmax(most, fabs(want->x[i]));
	for (size_t i = 0; i < want->n; i++)
		if (!(fabs((double)got[i] + want->x[i]) <=
			    0x1p-24 * fabs(want->x[i]) + 1e-12 * most))
			return 0;
	return 1;
}

static void merge_vector(
	const struct vector *v, enum dl_rule rule, float *update)
{
	static const char *const names[LEARNERS] = {
		"a", "b", "c", "d", "e", "f", "g", "h"};
	const struct dl_segment s = {0, v->base.n, rule};
	struct dl_contribution from[LEARNERS];
	float delta[LEARNERS][LENGTH];

	for (size_t j = 0; j < v->steps.n; j++) {
		for (size_t i = 0; i < s.n; i++)
			delta[j][i] = (float)-v->gradients.x[j * s.n + i];
		from[j] = (struct dl_contribution){.name = names[j],
			.weight = dl_merge_weight((uint64_t)v->tokens.x[j],
				(uint64_t)v->steps.x[j]),
			.scale = 1,
			.delta = delta[j]};
	}
	dl_merge_fragment(NULL, &s, 1, from, v->steps.n, update, NULL, NULL);
}

static int weights_agree(const struct vector *v)
{
	for (size_t j = 0; j < v->weights.n; j++)
		if (dl_merge_weight((uint64_t)v->tokens.x[j],
			    (uint64_t)v->steps.x[j]) != v->weights.x[j])
			return 0;
	return v->weights.n > 0;
}

/* Three roundings a step of values of this size. */
static int steps_agree(const struct vector *v, const float *update)
{
	const struct dl_outer outer = {0.7f, 0.9f, 1};
	const struct dl_segment s = {0, v->base.n, DL_RDA};
	float theta[LENGTH], momentum[LENGTH] = {0};

	for (size_t i = 0; i < s.n; i++)
		theta[i] = (float)v->base.x[i];
	for (size_t step = 0; step < STEPS; step++) {
		const double *want = v->nesterov.x + step * s.n;

		dl_outer_step(NULL, &outer, &s, 1, update, theta, momentum);
		for (size_t i = 0; i < s.n; i++)
			if (!(fabs((double)theta[i] - want[i]) <=
				    STEPS * 3 * 0x1p-24 * (1 + fabs(want[i]))))
				return 0;
	}
	return 1;
}

static int sizes_agree(const struct vector *v)
{
	size_t n = v->base.n, m = v->steps.n;

	return n > 0 && n <= LENGTH && m > 0 && m <= LEARNERS &&
	       v->gradients.n == n * m && v->tokens.n == m &&
	       v->weights.n == m && v->mean.n == n && v->rda.n == n &&
	       v->nesterov.n == STEPS * n;
}

static void test_vector(const struct vector *v)
{
	float update[LENGTH];

	if (!ok(sizes_agree(v), "%s, %zu learners", v->kind, v->steps.n))
		return;
	ok(weights_agree(v), "weights");
	merge_vector(v, DL_MEAN, update);
	ok(update_agrees(update, &v->mean), "mean");
	merge_vector(v, DL_RDA, update);
	ok(update_agrees(update, &v->rda), "rda");
	ok(steps_agree(v, update), "three outer steps");
	update[0] += 1e-6f;
	ok(!update_agrees(update, &v->rda), "one element off is noticed");
	update[0] += 1e-3f;
	ok(!steps_agree(v, update), "and in the outer steps");
}

static void test_file(const struct dl_buf *file)
{
	static struct vector v;
	struct dl_err e = {0};
	struct dl_json j;
	enum dl_json_token t;

	dl_json_init(&j, file->data, file->len, &e);
	dl_json_next(&j);
	while ((t = dl_json_next(&j)) == DL_JSON_KEY) {
		int merge = dl_json_is(&j, "merge");

		t = dl_json_next(&j);
		if (!merge) {
			dl_json_skip(&j, t);
			continue;
		}
		while (dl_json_next(&j) == DL_JSON_OBJECT) {
			read_vector(&j, &v);
			test_vector(&v);
		}
	}
	ok(t == DL_JSON_OBJECT_END && tap_count, "the file is read: %s",
		e.text);
	dl_json_release(&j);
}

int main(void)
{
	const char *top = getenv("abs_top_srcdir");
	char path[4096];
	int code;
	struct dl_buf file = DL_BUF_INIT;

	snprintf(path, sizeof path, "%s/../shared/vectors/merge.json",
		top ? top : ".");
	code = dl_read_file(path, 1 << 20, &file, NULL);
	if (code == DL_NOINPUT)
		skip("no %s", path);
	else if (ok(!code, "%s", path))
		test_file(&file);
	dl_buf_free(&file);
	return done_testing();
}
