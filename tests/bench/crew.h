/*
 * A syncer, `./dl-sync serve` on loopback tcp, and its learners: all on one
 * thread, which train nothing, make their steps together, and push the same
 * bytes from the same memory. What they are sent goes to the same memory too.
 */
#ifndef TESTS_BENCH_CREW_H
#define TESTS_BENCH_CREW_H

#include <stdint.h>

#include "tensor/quant.h"

struct crew_options {
	unsigned learners;
	uint32_t fragments;
	size_t elements;     /* of a fragment */
	enum dl_codec codec; /* of pushes and globals */
	unsigned commit;     /* after so many merges; 0: as it comes */
};

struct crew;

/* Starts them; all are welcome when it returns. */
struct crew *crew_new(const struct crew_options *o);
/* Each makes a step for each fragment at once, pushes what is opened, and has
 * had the new values of all. Returns the seconds that took. */
double crew_sync(struct crew *c);
/* Of the last crew_sync of one fragment: the seconds between the syncer's
 * having the last push and the first byte of what it made of it being here. */
double crew_latency(struct crew *c);
/* What the syncer has taken so far: seconds of CPU, and pages. */
struct crew_cost {
	double cpu;
	long faults;
};
struct crew_cost crew_cost(const struct crew *c);
/* All are idle for so many seconds, but for heartbeats. */
void crew_idle(struct crew *c, double seconds);
void crew_free(struct crew *c);

#endif
