#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* One contribution's delta of one segment: element i, scaled. */
static double delta(
	const struct dl_contribution *c, const struct dl_segment *s, size_t i)
{
	return c->scale * (double)c->delta[s->offset + i];
}

static double length(
	const struct dl_contribution *c, const struct dl_segment *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += delta(c, s, i) * delta(c, s, i);
	return sqrt(sum);
}

static void mean(const struct dl_segment *s, const struct dl_contribution *from,
	size_t m, double *out)
{
	for (size_t i = 0; i < s->n; i++) {
		double sum = 0, weights = 0;

		for (size_t j = 0; j < m; j++) {
			sum += from[j].weight * delta(&from[j], s, i);
			weights += from[j].weight;
		}
		out[i] = sum / weights;
	}
}

static void rda(const struct dl_segment *s, const struct dl_contribution *from,
	size_t m, double *out)
{
	double *u = dl_alloc_array(s->n, sizeof *u);
	double weights = 0, radius = 0, square = 0, t;

	for (size_t j = 0; j < m; j++) {
		double norm = length(&from[j], s);

		weights += from[j].weight;
		radius += from[j].weight * norm;
		for (size_t i = 0; norm > 0 && i < s->n; i++)
			u[i] += from[j].weight * delta(&from[j], s, i) / norm;
	}
	radius /= weights;
	for (size_t i = 0; i < s->n; i++) {
		u[i] /= weights;
		square += u[i] * u[i];
	}
	t = fmin(1, 64 * sqrt(square));
	mean(s, from, m, out);
	for (size_t i = 0; square > 0 && i < s->n; i++)
		out[i] = t * radius * u[i] / sqrt(square) + (1 - t) * out[i];
	free(u);
}

static void last(const struct dl_segment *s, const struct dl_contribution *from,
	size_t m, double *out)
{
	size_t best = 0;

	for (size_t j = 1; j < m; j++)
		if (from[j].weight > from[best].weight ||
			(from[j].weight == from[best].weight &&
				strcmp(from[j].name, from[best].name) < 0))
			best = j;
	for (size_t i = 0; i < s->n; i++)
		out[i] = from[best].delta[s->offset + i];
}

void reference_merge(const struct dl_segment *segments, size_t nsegments,
	const struct dl_contribution *from, size_t m, double *update)
{
	for (size_t k = 0; k < nsegments; k++) {
		const struct dl_segment *s = &segments[k];
		double *out = update + s->offset;

		if (s->rule == DL_RDA)
			rda(s, from, m, out);
		else if (s->rule == DL_LAST)
			last(s, from, m, out);
		else if (s->rule != DL_ALIAS)
			mean(s, from, m, out);
	}
}

void reference_step(const struct dl_outer *outer, enum dl_rule rule, size_t n,
	const double *update, double *theta, double *momentum)
{
	double lr = outer->lr, mu = outer->mu;

	for (size_t i = 0; i < n; i++) {
		double g = -update[i];

		if (rule == DL_STAT || rule == DL_LAST) {
			theta[i] += update[i];
		} else if (rule != DL_ALIAS) {
			momentum[i] = mu * momentum[i] + g;
			theta[i] -= lr * (outer->nesterov ? g + mu * momentum[i]
							  : momentum[i]);
		}
	}
}
