/*
 * How rank 0 leads the other ranks of a training (ranks.h). It alone hears a
 * learner and sees its files; by these calls it passes on what it changes, and
 * the others, in dl_follow, do as it does. A process alone leads nobody.
 */
#ifndef DL_TRAIN_LEAD_H
#define DL_TRAIN_LEAD_H

#include "train/training.h"

/* The others make this step, or take this loss, too: called there. */
void dl_lead_step(struct dl_training *t);
void dl_lead_loss(struct dl_training *t, size_t first, size_t end);

/* They get the n values from the one at `at`, or the whole state. Counters go
 * with each of these calls. */
void dl_lead_values(struct dl_training *t, size_t at, size_t n);
void dl_lead_state(struct dl_training *t);

/* Nothing more follows. */
void dl_lead_end(struct dl_training *t);

/* The other ranks: until dl_lead_end. */
void dl_follow(struct dl_training *t);

#endif
