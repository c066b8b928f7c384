/* How alike deltas are: cosines from their inner products. */
#include "merge/alike.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "merge/gram.h"
#include "merge/step.h"
#include "../tap.h"

enum { N = 10000, MOST = 17 };

static const struct dl_segment segments[] = {{0, N / 2, DL_RDA},
	{N / 2, N / 4, DL_MEAN}, {3 * N / 4, N / 4, DL_RDA}};
enum { SEGMENTS = sizeof segments / sizeof *segments };

static float delta[MOST][N];

/* What a merge of the first m deltas says of them. */
static struct dl_alike merge(size_t m, const double *products)
{
	static const char *const names[MOST] = {"a", "b", "c", "d", "e", "f",
		"g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"};
	static float theta[N], next[N];
	struct dl_contribution from[MOST];
	struct dl_alike alike = {2, 2};
	const struct dl_step step = {.outer = {0.7f, 0, 0},
		.theta = theta,
		.next = next,
		.alike = &alike};
	struct dl_err e;
	int code;

	for (size_t j = 0; j < m; j++)
		from[j] = (struct dl_contribution){.name = names[j],
			.weight = 1 + (double)j,
			.scale = 1,
			.delta = delta[j]};
	code = dl_merge_step(
		NULL, segments, SEGMENTS, from, m, products, &step, &e);
	if (code)
		ok(0, "%s", e.text);
	return alike;
}

static int near(double a, double b)
{
	return fabs(a - b) < 1e-6;
}

/* Element i of a delta: along axis x, but for the segment that does not
 * count. */
static void along(float *x, float by, size_t odd)
{
	for (size_t i = 0; i < N; i++)
		x[i] = i / (N / 4) == 2 ? 1 : i % 2 == odd ? by : 0;
}

static void test_pairs(void)
{
	struct dl_alike a;

	along(delta[0], 1, 0);
	along(delta[1], 3, 0);
	a = merge(2, NULL);
	ok(near(a.mean, 1) && near(a.least, 1), "the same direction: 1");
	along(delta[1], -2, 0);
	a = merge(2, NULL);
	ok(near(a.mean, -1) && near(a.least, -1), "opposite ones: -1");
	along(delta[1], 2, 1);
	a = merge(2, NULL);
	ok(near(a.mean, 0) && near(a.least, 0),
		"orthogonal ones: 0, whatever is not rda");
	along(delta[2], -1, 1);
	a = merge(3, NULL);
	ok(near(a.mean, -1.0 / 3) && near(a.least, -1),
		"of three the mean of pairs, and the least");
}

static void test_unknown(void)
{
	struct dl_alike a = merge(1, NULL);

	ok(isnan(a.mean) && isnan(a.least), "of one there is none");
	along(delta[0], 1, 0);
	along(delta[1], 0, 0);
	a = merge(2, NULL);
	ok(isnan(a.mean) && isnan(a.least), "nor of one that is nothing");
	along(delta[2], 1, 1);
	a = merge(3, NULL);
	ok(near(a.mean, 0) && near(a.least, 0), "who is left out then");
	a = merge(MOST, NULL);
	ok(isnan(a.mean) && isnan(a.least), "nor of more than %d",
		DL_GRAM_MOST);
}

/* Products that were gathered before give the same bits. */
static void test_products(void)
{
	const struct dl_contribution *who[3];
	struct dl_contribution from[3];
	double product[SEGMENTS * 9];
	struct dl_rng r = {1, 0};
	struct dl_alike a, b;

	for (size_t j = 0; j < 3; j++) {
		for (size_t i = 0; i < N; i++)
			delta[j][i] = (float)dl_rng_normal(&r);
		from[j] =
			(struct dl_contribution){.scale = 1, .delta = delta[j]};
		who[j] = &from[j];
	}
	dl_gram(NULL, segments, SEGMENTS, who, 3, 1, product);
	a = merge(3, NULL);
	b = merge(3, product);
	ok(a.mean == b.mean && a.least == b.least, "products that are known");
	ok(fabs(a.mean) < 0.05 && a.least < a.mean, "of chance: nearly 0");
}

int main(void)
{
	test_pairs();
	test_unknown();
	test_products();
	return done_testing();
}
