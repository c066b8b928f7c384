/*
 * What a trainer keeps of itself, by `save` between two steps: for the trainer
 * that follows one that died, and with --state for the learner that follows
 * this one, on this machine. Two files are written in turn, so that one is
 * always whole; a save that fails costs the save alone.
 */
#ifndef CMD_LEARN_SAVES_H
#define CMD_LEARN_SAVES_H

#include "cmd/learn/save_note.h"
#include "link/errand.h"

struct learner;
struct learn_options;

enum { SAVE_FOUND = 2, SAVE_FILES }; /* 0 and 1 are this process's own */

struct saves {
	char *folder; /* NULL: nothing is kept */
	int durable;  /* --state: it outlives this process */
	int lock;     /* holds the folder, if so; -1 */
	char *path[SAVE_FILES];
	int last;    /* the newest that is whole; -1: none */
	int kept;    /* the one that must stay until another is durable; -1 */
	int busy;    /* the one being put on the disk; -1: none */
	int asked;   /* the one that the trainer writes; -1: none */
	int finding; /* what was left by another process is looked at */
	int fresh;   /* the trainer was given last and made no step */
	int failed;  /* that it fails has been said */
	uint64_t steps; /* since the last save, or the trainer's start */
	int64_t next;	/* when one is due */
	uint64_t clock; /* of asked */
	struct dl_errands *errands;
	atomic_int stop; /* no more finding */
};
#define SAVES_INIT                                                             \
	{                                                                      \
		.lock = -1, .last = -1, .kept = -1, .busy = -1, .asked = -1    \
	}

/* The room they need in the scratch folder, in models. */
unsigned saves_models(const struct learn_options *o);
/* Takes the folder, as the options want it, and looks what is there. That it
 * cannot is said, and nothing is kept. */
void saves_begin(struct learner *l);
/* At the end of the process; what is of no more use is removed. */
void saves_release(struct learner *l);

/* The save that the next trainer is to go on from is not known yet. */
int saves_finding(const struct learner *l);
/* That save, or NULL. */
const char *saves_last(const struct learner *l);
/* It was of no use, for that reason. */
void saves_distrust(struct learner *l, const char *why);
/* The trainer is to go on from it. */
void saves_tried(struct learner *l);
/* What the trainer gives is no good, and that save may be why. */
void saves_suspect(struct learner *l);

/* At a boundary: is a save due? For who leaves each is that has a step. */
int saves_due(const struct learner *l, int64_t now);
/* Where it is to be written; saves_done when it was, or was not: why. */
const char *saves_ask(struct learner *l, int64_t now);
void saves_done(struct learner *l, const struct dl_err *why);
/* The trainer has made a step, or has died. */
void saves_step(struct learner *l);
void saves_death(struct learner *l, const struct dl_err *why);
/* Nothing is on its way to the disk. */
int saves_idle(const struct learner *l);

#endif
