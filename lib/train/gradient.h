/*
 * The gradient of a batch, its sequences shared out to the threads of all
 * ranks, each with a pass and a gradient of its own. These are summed in a
 * fixed order, a rank's first, so that as many threads of as many ranks give
 * the same bits: ranks of one thread those of one rank with as many threads.
 */
#ifndef DL_TRAIN_GRADIENT_H
#define DL_TRAIN_GRADIENT_H

#include "base/pool.h"
#include "train/pass.h"
#include "train/ranks.h"

struct dl_gradient;

/* For batches of up to that many sequences, on the pool's threads. What follows
 * is called on all ranks, with the whole batch, and gives each the same. */
struct dl_gradient *dl_gradient_new(const struct dl_llama *m,
	struct dl_pool *pool, struct dl_ranks *ranks, size_t sequences);
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
