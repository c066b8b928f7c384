/*
 * What a tape tells of a real run that the bandwidth model can be held
 * against: its settings, what was sent, and how much of the time went into
 * steps.
 *
 * A tape has the counts of steps that learners reported, and when. Over a
 * stretch of steps the time that is not steps times that of an undisturbed step
 * was lost. How long such a step takes is told, or it is a mean one of the
 * stretches that are faster than nine in ten of a learner's.
 */
#ifndef DL_SIM_MEASURED_H
#define DL_SIM_MEASURED_H

#include "base/err.h"
#include "sim/bandwidth.h"

struct dl_measured {
	uint32_t learners;     /* that ever reported steps */
	double seconds, steps; /* of all stretches together */
	double utilisation;    /* share of the seconds spent on steps */
	double bytes_up, bytes_down;
};

/*
 * Reads the tape fd, which place names in messages. The config gets what the
 * tape knows: the model as far as it was pushed, P, H, tau, bits of a value
 * each way with all that went along, and the mean time of an undisturbed step,
 * unless its step is above 0: then that is how long one takes. 65 when it is no
 * tape, or tells of too little; 74.
 */
int dl_measured_read(struct dl_measured *m, struct dl_bandwidth_config *c,
	int fd, const char *place, struct dl_err *e);

#endif
