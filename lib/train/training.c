#include "train/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "train/lead.h"

void dl_training_init(struct dl_training *t, const struct dl_llama *m,
	const struct dl_corpus *corpus,
	const struct dl_training_options *options)
{
	uint64_t source[] = {options->seed, options->slot};

	memset(t, 0, sizeof(*t));
	t->m = m;
	t->corpus = corpus;
	t->ranks = options->ranks;
	t->batch = options->batch;
	/* Launchers do not take the learner's variables to other machines. */
	dl_ranks_share(t->ranks, source, sizeof(source));
	t->key = dl_rng_key(source[0], source[1]);
	t->values = dl_big_alloc(m->size * sizeof(float));
	t->pool = options->threads == 1 ? NULL : dl_pool_new(options->threads);
	t->gradient = dl_gradient_new(m, t->pool, t->ranks, t->batch);
	t->ids = dl_alloc_array(
		t->batch * (m->config.context + 1), sizeof(*t->ids));
	dl_adamw_init(&t->adamw, m, &options->adamw);
}

void dl_training_release(struct dl_training *t)
{
	if (!t->m)
		return;
	dl_big_free(t->values, t->m->size * sizeof(float));
	dl_adamw_release(&t->adamw);
	dl_gradient_free(t->gradient);
	dl_pool_free(t->pool);
	free(t->ids);
	memset(t, 0, sizeof(*t));
}

double dl_training_step(struct dl_training *t)
{
	struct dl_batch b = {t->ids, t->batch, t->m->config.context};
	double loss;

	dl_lead_step(t);
	dl_corpus_sample(
		t->corpus, t->key, t->clock, b.sequences, b.length, t->ids);
	loss = dl_gradient_run(t->gradient, t->values, &b);
	dl_adamw_update(&t->adamw, t->pool, t->clock, t->values,
		dl_gradient_values(t->gradient));
	t->clock++;
	t->tokens += b.sequences * b.length;
	return loss;
}

size_t dl_training_step_tokens(const struct dl_training *t)
{
	return t->batch * t->m->config.context;
}

double dl_training_loss(struct dl_training *t, size_t first, size_t end)
{
	size_t left = end > first ? end - first - 1 : 0, count = left;
	double sum = 0;

	dl_lead_loss(t, first, end);
	while (left > 0) {
		struct dl_batch b = {t->ids, t->batch, t->m->config.context};

		if (left < b.length)
			b.length = left;
		if (left / b.length < b.sequences)
			b.sequences = left / b.length;
		for (size_t i = 0; i < b.sequences; i++)
			dl_corpus_copy(t->corpus, first + i * b.length,
				b.length + 1, t->ids + i * (b.length + 1));
		sum += dl_gradient_loss(t->gradient, t->values, &b) *
		       (double)(b.sequences * b.length);
		first += b.sequences * b.length;
		left -= b.sequences * b.length;
	}
	return count ? sum / (double)count : NAN;
}
