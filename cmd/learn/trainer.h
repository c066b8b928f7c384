/*
 * The trainer of a learner: what the core wants of it at a step boundary
 * becomes orders of dl-trainer(7), one after the other. A trainer that dies is
 * started again, after pauses that grow while nothing of its work can be sent.
 */
#ifndef CMD_LEARN_TRAINER_H
#define CMD_LEARN_TRAINER_H

#include "cmd/learn/environment.h"
#include "learn/learn.h"
#include "train/host.h"

struct learner;

struct trainer {
	struct dl_host *host;
	char *variable[ENVIRONMENT];
	const char *environ[ENVIRONMENT + 1];
	char *model; /* scratch path of the model to load */
	/* Actions of the core, oldest first; the trainer has got the orders of
	 * the first `begun`, and answers them in turn. */
	struct dl_learn_action *job;
	size_t jobs, begun, cap;
	int ready;     /* the trainer reads orders */
	int working;   /* so many answers to jobs[0] are due */
	int restoring; /* ... and has got no more than `restore` for it */
	int saving;    /* it has got `save` */
	int telling;   /* it has got `prepare` */
	int stopping;
	int stepped;	  /* ever */
	unsigned deaths;  /* in a row, without a push */
	int64_t start_at; /* INT64_MAX: running, or not to be started */
	int background;	  /* this process is, behind the trainer */
};

/* Makes its place in the scratch folder and starts it. */
int trainer_begin(struct learner *l, struct dl_err *e);
void trainer_release(struct learner *l);

/* Hears it and gives it its next orders. */
void trainer_work(struct learner *l, int64_t now);
/* Asks it to stop; learner_fail or the loop ends once it has. */
void trainer_stop(struct learner *l, int64_t now);
int trainer_stopped(const struct learner *l);
int64_t trainer_wake(const struct learner *l);

#endif
