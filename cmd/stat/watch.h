/*
 * Output once, or again and again: to a terminal in place of what was there.
 */
#ifndef CMD_STAT_WATCH_H
#define CMD_STAT_WATCH_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct watch {
	int over; /* set by the caller: nothing more will come */
	/* private */
	const char *output;
	int64_t period; /* 0: once */
	int terminal;
};

void watch_init(struct watch *w, const char *output, int64_t period);
/* What stands before an output. */
void watch_begin(const struct watch *w, struct dl_buf *out);
/* A file appears whole or not at all. */
int watch_write(struct watch *w, const struct dl_buf *out, struct dl_err *e);
/* Waits for the next one; 0 when there is none. */
int watch_wait(const struct watch *w);

#endif
