/*
 * A model in training: its values, its optimizer, its data and its clock. Any
 * program that trains drives this one, alone or as the trainer of a learner.
 * With several ranks, rank 0 does, and the others follow (lead.h).
 */
#ifndef DL_TRAIN_TRAINING_H
#define DL_TRAIN_TRAINING_H

#include "train/adamw.h"
#include "train/corpus.h"
#include "train/gradient.h"

struct dl_training_options {
	struct dl_adamw_options adamw;
	size_t batch;	     /* sequences a step */
	unsigned threads;    /* 0: one a CPU */
	uint64_t seed, slot; /* which samples are drawn */
	struct dl_ranks *ranks; /* who share the batch; NULL: nobody else */
};

struct dl_training {
	const struct dl_llama *m;
	const struct dl_corpus *corpus;
	float *values; /* m->size numbers */
	struct dl_adamw adamw;
	uint64_t clock;	 /* the logical clock: which step comes next */
	uint64_t tokens; /* trained on so far */
	/* private */
	struct dl_pool *pool;
	struct dl_ranks *ranks;
	struct dl_gradient *gradient;
	size_t batch;
	uint64_t key;
	uint16_t *ids;
};

/* All values are 0 until they are filled; m and corpus (which has passed
 * dl_corpus_check for the model's context) must outlive t. */
void dl_training_init(struct dl_training *t, const struct dl_llama *m,
	const struct dl_corpus *corpus,
	const struct dl_training_options *options);
void dl_training_release(struct dl_training *t);

/* One inner step: the samples of this clock, then the clock moves on by one.
 * Returns the mean loss in nats a token before the update. */
double dl_training_step(struct dl_training *t);

/* Tokens a step. */
size_t dl_training_step_tokens(const struct dl_training *t);

/* The mean loss on tokens [first, end) of the corpus, each but the first
 * predicted once from windows of the model's context; NaN when there are
 * fewer than two. */
double dl_training_loss(struct dl_training *t, size_t first, size_t end);

#endif
