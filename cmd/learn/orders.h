/*
 * The orders of a trainer: what the core wants of it, as jobs in a queue, each
 * of them one order of dl-trainer(7) or several.
 */
#ifndef CMD_LEARN_ORDERS_H
#define CMD_LEARN_ORDERS_H

#include <stdint.h>

#include "learn/learn.h"

struct learner;

/* An action of the core that is the trainer's: LOAD, IMPORT, COPY, APPLY,
 * CLOCK, EXPORT, GO, FINISH. */
void orders_take(struct learner *l, const struct dl_learn_action *a);
/* A trainer that waits for its first or next model gets none: this learner is
 * about to leave. */
void orders_unload(struct learner *l, int64_t now);
/* Gives it orders until it owes an answer. */
void orders_begin(struct learner *l, int64_t now);
/* The job at work has been answered; why: the trainer refused. */
void orders_finish(struct learner *l, const struct dl_err *why);
/* Of the job that loads: once more, since a save was of no use; and after one
 * was restored, the anchors. */
void orders_load(struct learner *l);
void orders_anchors(struct learner *l);
/* It is to save itself. */
void orders_save(struct learner *l, int64_t now);

#endif
