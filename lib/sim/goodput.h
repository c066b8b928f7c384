/*
 * Goodput under failures: chips that are interrupted now and then, learners
 * that stop or shrink for it, and what is left of the time that was paid for.
 *
 * A learner is a number of slices, equal parts of its chips. It trains in
 * steps, and changes at the end of one:
 *
 * - A chip is interrupted, at a constant rate a chip that trains. An elastic
 *   learner stalls for down_s and goes on without that slice; a rigid one
 *   waits for the chips. Further interruptions before the end of the step are
 *   part of the same change, and chips of a learner that stalls are spared.
 * - A slice is back return_s after its interruption. Slices that are back are
 *   gathered for gather_s from the first on, then the learner stalls for up_s
 *   and takes them in. A stall for another reason takes them in as well.
 *
 * Learners share nothing but the count of those that train. The times and the
 * rate are means of the paper's "chaos" model; draws are exponential.
 */
#ifndef DL_SIM_GOODPUT_H
#define DL_SIM_GOODPUT_H

#include <stdint.h>

struct dl_goodput_config {
	double chips;
	uint32_t learners; /* chips are shared out evenly */
	uint32_t quorum;   /* the system is up while so many train */
	int rigid;	   /* learners are not elastic */
	double slice;	   /* chips; rounded so that slices are equal */
	/* Seconds. */
	double interrupted; /* mean time between interruptions of a chip */
	double step, down, up, back, gather;
	double spread; /* a slice's speed is drawn from [1 - spread, 1], and a
			* learner is as fast as its slowest */
	/* Rigid learners go back to the last checkpoint; 0: they lose
	 * nothing. every 0: as Young and Daly have it, sqrt(2 checkpoint
	 * mean time between failures). */
	double checkpoint, every;
	double time; /* simulated */
	uint64_t seed;
};

/* The physical parameters with which the paper's table comes out; chips and
 * learners are the caller's. dl-sim(1) says how they were found. */
void dl_goodput_config_default(struct dl_goodput_config *c);

/* Where chip time went; shares of what was allocated, which add up to 1. */
enum dl_goodput_share {
	DL_GOODPUT_USEFUL,
	DL_GOODPUT_MISSING, /* chips that are gone, or wait to be taken in */
	DL_GOODPUT_DOWN,    /* stalls: learners shrink */
	DL_GOODPUT_UP,	    /* stalls: learners grow */
	DL_GOODPUT_AWAY,    /* stalls: no slice, or for rigid ones a chip */
	DL_GOODPUT_SLOW,    /* waiting for the slowest slice */
	DL_GOODPUT_REDONE,  /* since a checkpoint, and making these */
	DL_GOODPUT_SHARES
};
extern const char *const dl_goodput_share_names[DL_GOODPUT_SHARES];

struct dl_goodput_result {
	double share[DL_GOODPUT_SHARES]; /* [DL_GOODPUT_USEFUL]: goodput */
	double uptime;			 /* share of the time */
	uint64_t failures, changes;	 /* interruptions; stalls */
	double chip_hours;		 /* useful ones */
};

void dl_goodput_run(
	const struct dl_goodput_config *c, struct dl_goodput_result *out);

#endif
