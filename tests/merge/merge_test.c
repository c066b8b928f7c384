/* Merging, against the reference and on degenerate rounds. */
#include "merge/merge.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fixture.h"
#include "reference.h"
#include "../tap.h"

/*
 * How far an element may be from the reference: the one rounding to f32, and
 * double's own error in proportion to the largest delta of the segment.
 */
static double tolerance(double want, double largest)
{
	return 0x1p-24 * fabs(want) + 1e-12 * largest + 0x1p-150;
}

static double largest_delta(const struct fixture *f, const struct dl_segment *s)
{
	double most = 0;

	for (size_t j = 0; j < f->m; j++)
		for (size_t i = 0; i < s->n; i++)
			most = fmax(
				most, fabs((double)f->delta[j][s->offset + i]));
	return most;
}

/* How many elements are further off than allowed. */
static size_t count_off(
	const struct fixture *f, const float *got, const double *want)
{
	size_t off = 0;

	for (size_t k = 0; k < f->nsegments; k++) {
		const struct dl_segment *s = &f->segments[k];
		double largest = largest_delta(f, s);

		for (size_t i = s->offset; i < s->offset + s->n; i++)
			off += !(fabs(got[i] - want[i]) <=
				 tolerance(want[i], largest));
	}
	return off;
}

static void test_reference(enum fixture_kind kind, size_t m)
{
	struct fixture f;
	float *got;
	double *want;
	const struct dl_segment *s;
	int code;

	fixture_init(&f, kind, m, 1 + kind);
	got = dl_alloc_array(f.n, sizeof *got);
	want = dl_alloc_array(f.n, sizeof *want);
	code = dl_merge_fragment(
		NULL, f.segments, f.nsegments, f.from, m, got, NULL, NULL);
	reference_merge(f.segments, f.nsegments, f.from, m, want);
	ok(!code && !count_off(&f, got, want),
		"%s, %zu learners: as the reference", fixture_name[kind], m);

	/* The check can fail: a little more than allowed is too much. */
	s = &f.segments[f.nsegments - 5];
	got[s->offset] =
		(float)(want[s->offset] +
			4 * tolerance(want[s->offset], largest_delta(&f, s)));
	ok(count_off(&f, got, want) == 1, "one element off is noticed");
	free(got);
	free(want);
	fixture_release(&f);
}

/* Merged from codes. */
static void test_codes(enum fixture_kind kind, size_t m)
{
	struct fixture f;
	float *got;
	double *want;
	int code;

	fixture_init(&f, kind, m, 60 + kind);
	fixture_encode_all(&f);
	got = dl_alloc_array(f.n, sizeof *got);
	want = dl_alloc_array(f.n, sizeof *want);
	code = dl_merge_fragment(
		NULL, f.segments, f.nsegments, f.from, m, got, NULL, NULL);
	for (size_t j = 0; j < m; j++)
		f.from[j].delta = f.delta[j];
	reference_merge(f.segments, f.nsegments, f.from, m, want);
	ok(!code && !count_off(&f, got, want),
		"%s, %zu learners, codes: as the reference", fixture_name[kind],
		m);
	free(got);
	free(want);
	fixture_release(&f);
}

static void test_alone(void)
{
	struct fixture f;
	float *got;
	int same = 1;

	for (int kind = 0; kind < FIXTURES; kind++) {
		fixture_init(&f, (enum fixture_kind)kind, 2, 7);
		f.delta[1][0] = -0.0f;
		f.from[0].weight = 0; /* the other is alone */
		got = dl_alloc_array(f.n, sizeof *got);
		dl_merge_fragment(NULL, f.segments, f.nsegments, f.from, 2, got,
			NULL, NULL);
		for (size_t k = 0; k < f.nsegments; k++) {
			const struct dl_segment *s = &f.segments[k];

			same &= s->rule == DL_ALIAS ||
				!memcmp(got + s->offset, f.delta[1] + s->offset,
					s->n * sizeof *got);
		}
		free(got);
		fixture_release(&f);
	}
	ok(same, "a lone contributor's delta passes bit for bit");
}

static void test_cancel(void)
{
	const struct dl_segment s = {0, 3, DL_RDA};
	float a[] = {1, 2, -3}, b[] = {-1, -2, 3}, got[3];
	struct dl_contribution from[] = {
		{.name = "a", .weight = 3, .scale = 1, .delta = a},
		{.name = "b", .weight = 3, .scale = 1, .delta = b},
	};

	dl_merge_fragment(NULL, &s, 1, from, 2, got, NULL, NULL);
	ok(got[0] == 0 && got[1] == 0 && got[2] == 0, "opposites cancel");
	for (int i = 0; i < 3; i++)
		b[i] *= 0.5f;
	dl_merge_fragment(NULL, &s, 1, from, 2, got, NULL, NULL);
	ok(fabsf(got[0] - 0.25f) < 1e-6f && fabsf(got[1] - 0.5f) < 1e-6f &&
			fabsf(got[2] + 0.75f) < 1e-6f,
		"opposite directions fall back to the mean");
}

static void test_last(void)
{
	const struct dl_segment s = {0, 2, DL_LAST};
	float a[] = {1, -0.0f}, b[] = {5, 7}, got[2];
	struct dl_contribution from[] = {
		{.name = "b", .weight = 4, .scale = 1, .delta = b},
		{.name = "a", .weight = 4, .scale = 0.5, .delta = a},
	};

	dl_merge_fragment(NULL, &s, 1, from, 2, got, NULL, NULL);
	ok(got[0] == 1 && signbit(got[1]), "last: first by name, unscaled");
	from[0].weight = 5;
	dl_merge_fragment(NULL, &s, 1, from, 2, got, NULL, NULL);
	ok(got[0] == 5 && got[1] == 7, "last: the heaviest");
}

static void test_refused(void)
{
	const struct dl_segment s = {0, 1, DL_RDA};
	float a = 1, b = FLT_MAX, got = 9;
	struct dl_contribution from[] = {
		{.name = "a", .weight = 0, .scale = 1, .delta = &a},
		{.name = "b", .weight = 0, .scale = 1, .delta = &b},
	};
	struct dl_err e = {0};

	ok(dl_merge_fragment(NULL, &s, 1, from, 2, &got, NULL, &e) == DL_NO &&
			dl_merge_fragment(NULL, &s, 1, from, 0, &got, NULL,
				&e) == DL_NO &&
			got == 9,
		"no weight, no update");
	from[1].name = "a";
	ok(dl_merge_fragment(NULL, &s, 1, from, 2, &got, NULL, &e) == DL_DATA &&
			!strcmp(e.text, "a: contributes twice"),
		"a name that comes twice");
	from[1].name = "b";
	from[1].weight = NAN;
	ok(dl_merge_fragment(NULL, &s, 1, from, 2, &got, NULL, &e) == DL_DATA,
		"a weight that is no number");
	from[1].weight = 1;
	from[1].scale = 0;
	ok(dl_merge_fragment(NULL, &s, 1, from, 2, &got, NULL, &e) == DL_DATA,
		"a scale of nothing");
	from[1].scale = 1;
	b = INFINITY;
	ok(dl_merge_fragment(NULL, &s, 1, from, 2, &got, NULL, &e) == DL_DATA,
		"an infinite delta gives no usable update");
	from[0].weight = 1;
	b = FLT_MAX;
	from[0].scale = from[1].scale = 4;
	ok(dl_merge_fragment(NULL, &s, 1, from, 2, &got, NULL, &e) == DL_DATA,
		"nor does overflow");
}

static void read_halves(const void *ctx, size_t offset, size_t n, float *out)
{
	const float *const *half = ctx;

	memset(out, 0, n * sizeof *out);
	dl_merge_add(out, 1, half[0] + offset, n);
	dl_merge_add(out, 0.25, half[1] + offset, n);
}

static void test_read(void)
{
	struct fixture f, g;
	const float *half[2];
	struct dl_segment all = {0, 0, DL_MEAN};
	float *got, *want;
	double norm;

	fixture_init(&f, NORMAL, 3, 5);
	fixture_init(&g, NORMAL, 1, 6);
	got = dl_alloc_array(f.n, sizeof *got);
	want = dl_alloc_array(f.n, sizeof *want);
	half[0] = f.delta[1];
	half[1] = g.delta[0];
	f.from[1].delta = NULL;
	f.from[1].read = read_halves;
	f.from[1].ctx = half;
	all.n = f.n;
	dl_merge_fragment(
		NULL, f.segments, f.nsegments, f.from, 3, got, NULL, NULL);
	norm = dl_norm_fragment(NULL, &all, 1, &f.from[1]);
	dl_merge_add(f.delta[1], 0.25, g.delta[0], f.n);
	f.from[1].delta = f.delta[1];
	dl_merge_fragment(
		NULL, f.segments, f.nsegments, f.from, 3, want, NULL, NULL);
	ok(!memcmp(got, want, f.n * sizeof *got),
		"a delta that is read a block at a time gives the same bits");
	ok(norm == dl_norm(NULL, f.delta[1], f.n), "and the same norm");
	free(got);
	free(want);
	fixture_release(&f);
	fixture_release(&g);
}

static void test_shares(void)
{
	const struct dl_segment s[] = {{0, 2, DL_MEAN}, {2, 1, DL_MEAN}};
	float a[] = {3, 0, 4}, b[] = {-3, 0, -4}, z[] = {9, 9, 9}, got[3];
	struct dl_contribution from[] = {
		{.name = "z", .weight = 0, .scale = 1, .delta = z},
		{.name = "b", .weight = 1, .scale = 0.5, .delta = b},
		{.name = "a", .weight = 3, .scale = 1, .delta = a},
	};
	struct dl_share share[3];

	dl_merge_fragment(NULL, s, 2, from, 3, got, share, NULL);
	ok(share[0].weight == 0 && share[0].norm == 0 && share[0].cosine == 0,
		"who weighs nothing has no share");
	ok(share[1].weight == 0.25 && share[1].norm == 2.5 &&
			fabs(share[1].cosine + 1) < 1e-12,
		"weight, norm and cosine of one against");
	ok(share[2].weight == 0.75 && share[2].norm == 5 &&
			fabs(share[2].cosine - 1) < 1e-12,
		"weight, norm and cosine of one along");
}

static void test_norm(void)
{
	static float x[10000];
	double norm;

	for (size_t i = 0; i < 10000; i++)
		x[i] = i % 2 ? 3e38f : -3e38f;
	norm = dl_norm(NULL, x, 10000);
	ok(fabs(norm / 3e40 - 1) < 1e-6, "norm of huge values: %g", norm);
	for (size_t i = 0; i < 10000; i++)
		x[i] = 0x1p-149f;
	norm = dl_norm(NULL, x, 10000);
	ok(norm == 100 * 0x1p-149, "norm of denormals: %g", norm);
	ok(dl_norm(NULL, x, 0) == 0, "norm of nothing");
	ok(dl_find_nonfinite(x, 10000) == 10000, "all finite");
	x[8191] = NAN;
	ok(!isfinite(dl_norm(NULL, x, 10000)) &&
			dl_find_nonfinite(x, 10000) == 8191,
		"NaN is found");
	x[77] = -INFINITY;
	ok(!isfinite(dl_norm(NULL, x, 10000)) &&
			dl_find_nonfinite(x, 10000) == 77,
		"infinity is found");
}

int main(void)
{
	static const size_t learners[] = {1, 2, 3, 8, 17};

	ok(dl_merge_weight(300, 3) == 30000 && dl_merge_weight(0, 3) == 0 &&
			dl_merge_weight(3, 0) == 0,
		"tokens times tokens a step");
	for (int kind = 0; kind < FIXTURES; kind++)
		for (size_t i = 0; i < 5; i++) {
			test_reference((enum fixture_kind)kind, learners[i]);
			test_codes((enum fixture_kind)kind, learners[i]);
		}
	test_alone();
	test_cancel();
	test_last();
	test_refused();
	test_read();
	test_shares();
	test_norm();
	return done_testing();
}
