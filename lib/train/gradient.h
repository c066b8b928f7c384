/*
 * The gradient of a batch, its sequences shared out to threads, each with a
 * pass and a gradient of its own; these are summed in a fixed order, so that
 * the same number of threads gives the same bits.
 */
#ifndef DL_TRAIN_GRADIENT_H
#define DL_TRAIN_GRADIENT_H

#include "base/pool.h"
#include "train/pass.h"

struct dl_gradient;

/* For batches of up to that many sequences, on the pool's threads. */
struct dl_gradient *dl_gradient_new(
	const struct dl_llama *m, struct dl_pool *pool, size_t sequences);
void dl_gradient_free(struct dl_gradient *g); /* NULL is fine */

/*
 * The mean cross entropy a token, in nats, under values (m->size numbers), and
 * its gradient, which dl_gradient_values then holds.
 */
double dl_gradient_run(
	struct dl_gradient *g, const float *values, const struct dl_batch *b);
const float *dl_gradient_values(const struct dl_gradient *g);

/* The mean cross entropy alone. */
double dl_gradient_loss(
	struct dl_gradient *g, const float *values, const struct dl_batch *b);

#endif
