/*
 * Steps at a fixed wall-clock length, so that many learners can be studied on
 * a machine that could not run them all at full speed.
 */
#ifndef DL_TRAIN_PACE_H
#define DL_TRAIN_PACE_H

#include <stdint.h>

struct dl_pace {
	int64_t period; /* nanoseconds a step; 0: as fast as it goes */
	int64_t due;	/* private: when the step in hand should end */
};

/* Sleeps until a period after the last call; a step that took longer is not
 * made up for by shorter ones. A signal ends the sleep early. */
void dl_pace_wait(struct dl_pace *p);

#endif
