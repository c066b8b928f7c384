/*
 * The trainer's side of dl-trainer(7): a learner says over a unix socket what
 * to do between two inner steps, tensors pass through scratch files.
 */
#ifndef DL_TRAIN_TRAINER_H
#define DL_TRAIN_TRAINER_H

#include <signal.h>

#include "train/export.h"
#include "train/fragments.h"
#include "train/pace.h"
#include "train/training.h"

struct dl_trainer {
	struct dl_training *training;
	struct dl_fragments *fragments; /* NULL without a layout */
	struct dl_pace *pace;
	const volatile sig_atomic_t *stop;	 /* set by a signal: end here */
	void (*stepped)(void *ctx, double loss); /* after each step */
	void *ctx;
	/* What it came to. */
	uint64_t steps;
	int64_t spent; /* ns, from the first step's begin to the last's end */
	int64_t lost;  /* ... of which on the learner, between steps */
	/* private */
	int fd;
	int64_t began, boundary; /* the first step, the last one's end */
	struct dl_buf in, out;
	struct dl_export export;
};

/*
 * Connects to the socket at path and trains until `stop`, the end of the
 * input or the stop flag; 69 when nobody listens. An order that cannot be
 * obeyed is answered with its error and changes nothing.
 */
int dl_trainer_run(struct dl_trainer *t, const char *path, struct dl_err *e);

#endif
