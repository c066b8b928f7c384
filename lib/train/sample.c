#include "train/sample.h"

#include <math.h>

static uint16_t draw(
	const float *logits, size_t n, double temperature, double at)
{
	size_t best = 0;
	double sum = 0;

	for (size_t i = 1; i < n; i++)
		if (logits[i] > logits[best])
			best = i;
	if (temperature == 0)
		return (uint16_t)best;
	for (size_t i = 0; i < n; i++)
		sum += exp((logits[i] - logits[best]) / temperature);
	at *= sum;
	for (size_t i = 0; i < n; i++) {
		at -= exp((logits[i] - logits[best]) / temperature);
		if (at < 0)
			return (uint16_t)i;
	}
	return (uint16_t)best; /* what rounding leaves */
}

uint16_t dl_sample(struct dl_pass *p, const struct dl_llama *m,
	const float *values, const uint16_t *ids, size_t n, double temperature,
	struct dl_rng *r, float *logits)
{
	size_t context = m->config.context;
	size_t seen = n < context ? n : context;

	dl_pass_next(p, values, ids + n - seen, seen, logits);
	return draw(logits, m->config.vocab, temperature, dl_rng_uniform(r));
}
