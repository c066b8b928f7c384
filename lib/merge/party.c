#include "merge/party.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Above |u| = 1/STEEP, rda is the paper's; below, it turns into the mean. */
#define STEEP 64.0

static int by_name(const void *a, const void *b)
{
	const struct dl_contribution *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int check(
	const struct dl_contribution *c, const char *before, struct dl_err *e)
{
	char name[80];

	dl_scrub(name, sizeof name, c->name, strlen(c->name));
	if (before && !strcmp(before, c->name))
		return dl_fail(e, DL_DATA, "%s: contributes twice", name);
	if (!isfinite(c->weight) || c->weight < 0)
		return dl_fail(e, DL_DATA, "%s: weight %g out of range", name,
			c->weight);
	if (!isfinite(c->scale) || c->scale <= 0)
		return dl_fail(e, DL_DATA, "%s: scale %g out of range", name,
			c->scale);
	return 0;
}

static int check_all(
	const struct dl_contribution **who, size_t n, struct dl_err *e)
{
	int code;

	for (size_t i = 0; i < n; i++) {
		code = check(who[i], i ? who[i - 1]->name : NULL, e);
		if (code)
			return code;
	}
	return 0;
}

/* Drops those that weigh nothing; relative weights, so that no product of a
 * weight and a norm overflows. */
static int weigh_in(struct dl_party *p, size_t n, struct dl_err *e)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		if (p->who[i]->weight > 0)
			p->who[p->m++] = p->who[i];
	for (size_t j = 0; j < p->m; j++) {
		sum += p->who[j]->weight;
		if (p->who[j]->weight > p->who[p->heaviest]->weight)
			p->heaviest = j;
	}
	if (!p->m)
		return dl_fail(e, DL_NO, "no weight to merge");
	if (!isfinite(sum))
		return dl_fail(e, DL_DATA, "weights overflow");
	for (size_t j = 0; j < p->m; j++)
		p->part[j] = p->who[j]->weight / sum;
	return 0;
}

int dl_party_init(struct dl_party *p, const struct dl_contribution *c, size_t n,
	struct dl_err *e)
{
	int code;

	*p = (struct dl_party){0};
	p->who = dl_alloc_array(n, sizeof *p->who);
	p->part = dl_alloc_array(n, sizeof *p->part);
	for (size_t i = 0; i < n; i++)
		p->who[i] = &c[i];
	qsort(p->who, n, sizeof *p->who, by_name);
	code = check_all(p->who, n, e);
	if (!code)
		code = weigh_in(p, n, e);
	if (code)
		dl_party_release(p);
	return code;
}

void dl_party_release(struct dl_party *p)
{
	free(p->who);
	free(p->part);
	*p = (struct dl_party){0};
}

void dl_party_direct(const struct dl_party *p, const double *norm, double *coef)
{
	for (size_t j = 0; j < p->m; j++)
		coef[j] = norm[j] > 0 ? p->part[j] / norm[j] : 0;
}

static void weigh_rda(const struct dl_party *p, const double *norm,
	double length, double *coef)
{
	double radius = 0, t = fmin(1, STEEP * length), stretch;

	for (size_t j = 0; j < p->m; j++)
		radius += p->part[j] * (p->who[j]->scale * norm[j]);
	/* t R/|u| without dividing by what may be nothing. */
	stretch = t < 1 ? STEEP * radius : radius / length;
	dl_party_direct(p, norm, coef);
	for (size_t j = 0; j < p->m; j++)
		coef[j] = stretch * coef[j] +
			  (1 - t) * (p->part[j] * p->who[j]->scale);
}

void dl_party_weigh(const struct dl_party *p, enum dl_rule rule,
	const double *norm, double length, double *coef)
{
	if (rule == DL_LAST) {
		for (size_t j = 0; j < p->m; j++)
			coef[j] = j == p->heaviest;
	} else if (rule == DL_RDA && p->m > 1) {
		weigh_rda(p, norm, length, coef);
	} else {
		for (size_t j = 0; j < p->m; j++)
			coef[j] = p->part[j] * p->who[j]->scale;
	}
}
