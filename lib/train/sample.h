/*
 * Text from a model, a token at a time.
 */
#ifndef DL_TRAIN_SAMPLE_H
#define DL_TRAIN_SAMPLE_H

#include "base/rng.h"
#include "train/pass.h"

/*
 * The token that follows ids[0..n), n > 0: drawn from the model's
 * distribution at that temperature, or the likeliest when it is 0. Only the
 * last `context` of ids count. logits is scratch for vocab numbers.
 */
uint16_t dl_sample(struct dl_pass *p, const struct dl_llama *m,
	const float *values, const uint16_t *ids, size_t n, double temperature,
	struct dl_rng *r, float *logits);

#endif
