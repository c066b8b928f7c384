/*
 * What a pass has done, for its last line.
 */
#ifndef CMD_RUN_REPORT_H
#define CMD_RUN_REPORT_H

#include <stddef.h>

#include "sync/sync.h"

struct report {
	size_t taken[DL_TAKENS];
	size_t refused[DL_REFUSALS]; /* by the core, and why */
	size_t unfit;		     /* set apart: no push of this run */
	size_t waiting;		     /* left for a later pass */
	size_t passed_over;	     /* files that are nothing to us */
	size_t merged, collected;
};

struct pass;

/* The line of the pass. */
void report_show(const struct pass *p);
/* What the run waits for, when a pass could do nothing. */
void report_why(const struct pass *p, char *out, size_t size);

#endif
