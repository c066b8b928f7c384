/*
 * A pass through the model, forwards and back, over a few sequences at a time.
 * All it needs is placed once, in one arena; nothing is allocated a step.
 * dl_blas_load comes first.
 */
#ifndef DL_TRAIN_PASS_H
#define DL_TRAIN_PASS_H

#include "train/llama.h"

struct dl_pass;

/* Sequences of length tokens, each followed by one more: the last target. */
struct dl_batch {
	const uint16_t *ids; /* [sequences, length + 1], each below vocab */
	size_t sequences, length;
};

/*
 * Room for as many sequences of the model's context as are worth working on
 * at once, at most `sequences`; larger batches go through in parts.
 */
struct dl_pass *dl_pass_new(const struct dl_llama *m, size_t sequences);
void dl_pass_free(struct dl_pass *p); /* NULL is fine */

/* The summed cross entropy of b, in nats, under values (m->size numbers). */
double dl_pass_loss(
	struct dl_pass *p, const float *values, const struct dl_batch *b);

/* The same, and adds its gradient times scale to grad (m->size numbers). */
double dl_pass_gradient(struct dl_pass *p, const float *values,
	const struct dl_batch *b, float scale, float *grad);

/* The logits (vocab of them) of what follows ids[0..n), 0 < n <= context. */
void dl_pass_next(struct dl_pass *p, const float *values, const uint16_t *ids,
	size_t n, float *logits);

#endif
