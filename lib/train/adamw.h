/*
 * AdamW with its schedule: decoupled weight decay on matrices only, gradient
 * clipping by the norm of the whole, warm-up and a cosine decay that follow
 * the logical clock.
 */
#ifndef DL_TRAIN_ADAMW_H
#define DL_TRAIN_ADAMW_H

#include "base/pool.h"
#include "train/llama.h"

struct dl_adamw_options {
	double rate;  /* highest learning rate */
	double floor; /* lowest, as a part of rate */
	double beta1, beta2, eps;
	double decay;	 /* decoupled weight decay */
	double clip;	 /* largest norm of the gradient */
	uint64_t warmup; /* steps of linear rise */
	uint64_t steps;	 /* where the cosine reaches the floor; 0: never */
};
#define DL_ADAMW_DEFAULTS                                                      \
	{                                                                      \
		.rate = 3e-3, .floor = 0.1, .beta1 = 0.9, .beta2 = 0.95,       \
		.eps = 1e-8, .decay = 0.1, .clip = 1, .warmup = 100            \
	}

struct dl_adamw {
	const struct dl_llama *m;
	struct dl_adamw_options options;
	float *first, *second; /* moments, m->size numbers each */
	uint64_t updates;      /* since the moments were zero */
	uint64_t since;	       /* the clock when they were */
	double *sums; /* private: scratch of the norm of the gradient */
};

void dl_adamw_init(struct dl_adamw *a, const struct dl_llama *m,
	const struct dl_adamw_options *options);
void dl_adamw_release(struct dl_adamw *a);

/* Forgets the moments and warms up again from this clock. */
void dl_adamw_restart(struct dl_adamw *a, uint64_t clock);

/* The learning rate of the step that this clock begins. */
double dl_adamw_rate(const struct dl_adamw *a, uint64_t clock);

/* One update of values by grad (m->size numbers each). Returns the norm of
 * the gradient before clipping; when it is not finite nothing is changed. */
double dl_adamw_update(struct dl_adamw *a, struct dl_pool *pool, uint64_t clock,
	float *values, const float *grad);

#endif
