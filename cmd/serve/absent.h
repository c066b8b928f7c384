/*
 * Learners that were cut off and are not back. One that finds no syncer trains
 * on, so an ended run has its syncer stay for as long as a learner takes to
 * return, to tell those who were lost just before.
 */
#ifndef CMD_SERVE_ABSENT_H
#define CMD_SERVE_ABSENT_H

#include <stddef.h>
#include <stdint.h>

#include "sync/sync.h"

struct server;

struct lost {
	char name[DL_NAME_MAX + 1];
	int64_t at;
};

/* All zeroes: nobody. */
struct absent {
	struct lost *who;
	size_t n, cap;
	int64_t until; /* they are waited for, once the run is over */
};

/* A learner is gone without a bye; here again. */
void absent_add(struct absent *a, const char *name, int64_t now);
void absent_return(struct server *s, const char *name, int64_t now);
/* The run is over, and they do not know. */
void absent_wait(struct server *s, int64_t now);
void absent_release(struct absent *a);

#endif
