/* The outer optimizer, against the reference. */
#include "merge/outer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "reference.h"
#include "../tap.h"

enum { N = 3 * DL_MERGE_BLOCK + 77, STEPS = 5 };

static float update[N], theta[N], momentum[N];
static double wanted[N], wanted_theta[N], wanted_momentum[N];

static void fill(void)
{
	struct dl_rng r = {11, 0};

	for (size_t i = 0; i < N; i++) {
		update[i] = (float)(0.01 * dl_rng_normal(&r));
		theta[i] = (float)dl_rng_normal(&r);
		momentum[i] = 0;
		wanted[i] = (double)update[i];
		wanted_theta[i] = (double)theta[i];
		wanted_momentum[i] = 0;
	}
}

/* Values near 1 that go through STEPS steps of three roundings each. */
static int near_wanted(void)
{
	for (size_t i = 0; i < N; i++)
		if (!(fabs((double)theta[i] - wanted_theta[i]) <=
			    STEPS * 3 * 0x1p-24 * (1 + fabs(wanted_theta[i]))))
			return 0;
	return 1;
}

static void test_step(
	const char *what, struct dl_outer outer, enum dl_rule rule)
{
	const struct dl_segment s[] = {{0, N, rule}};
	float *state = outer.mu > 0 ? momentum : NULL;

	fill();
	for (int i = 0; i < STEPS; i++) {
		dl_outer_step(NULL, &outer, s, 1, update, theta, state);
		reference_step(
			&outer, rule, N, wanted, wanted_theta, wanted_momentum);
	}
	ok(near_wanted(), "%s, %s: as the reference", what, dl_rule_name(rule));
	theta[N - 1] += 4e-6f * (1 + fabsf(theta[N - 1]));
	ok(!near_wanted(), "one element off is noticed");
}

static void test_exact(void)
{
	const struct dl_outer outer = {0.7f, 0.9f, 1};
	const struct dl_segment s[] = {{0, 1, DL_RDA}};
	float u = 0.3f, t = 1.25f, b = -0.4f;
	float g = -u, moved = 0.9f * b, look, want;

	moved = moved + g;
	look = 0.9f * moved;
	look = g + look;
	look = 0.7f * look;
	want = t - look;
	dl_outer_step(NULL, &outer, s, 1, &u, &t, &b);
	ok(t == want && b == moved, "plain f32 in the stated order");
}

static void test_segments(void)
{
	const struct dl_outer outer = {0.5f, 0.5f, 0};
	const struct dl_segment s[] = {{0, 1, DL_MEAN}, {1, 1, DL_STAT},
		{2, 1, DL_LAST}, {3, 1, DL_ALIAS}};
	float u[] = {8, 8, 8, 8}, t[] = {1, 1, 1, 1, 1}, b[] = {2, 2, 2, 2, 2};

	dl_outer_step(NULL, &outer, s, 4, u, t, b);
	ok(t[0] == 4.5f && b[0] == -7, "momentum: b = mu b + g, theta - lr b");
	ok(t[1] == 9 && b[1] == 2 && t[2] == 9 && b[2] == 2,
		"stat and last add the update and leave the momentum");
	ok(t[3] == 1 && b[3] == 2 && t[4] == 1 && b[4] == 2,
		"alias, and what is in no segment, stay");
	dl_outer_step(NULL, &outer, s, 0, u, t, b);
	ok(t[0] == 4.5f && b[0] == -7, "no segments, no step");
}

int main(void)
{
	static const enum dl_rule rules[] = {DL_RDA, DL_MEAN, DL_STAT};

	for (int i = 0; i < 3; i++) {
		test_step("plain", (struct dl_outer){1, 0, 0}, rules[i]);
		test_step(
			"momentum", (struct dl_outer){0.7f, 0.5f, 0}, rules[i]);
		test_step(
			"Nesterov", (struct dl_outer){0.7f, 0.9f, 1}, rules[i]);
	}
	test_exact();
	test_segments();
	return done_testing();
}
