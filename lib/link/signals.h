/*
 * Signals as bytes on a pipe, so that a poll loop sees them as events.
 */
#ifndef DL_LINK_SIGNALS_H
#define DL_LINK_SIGNALS_H

#include <stddef.h>

#include "base/err.h"

/* Catches n signals from now on; *fd, to be polled for POLLIN, is one for the
 * whole process. SIGPIPE is ignored. 71 on failure. */
int dl_signals_open(const int *signals, size_t n, int *fd, struct dl_err *e);

/* The next signal that came, in order; 0 when there is none. */
int dl_signals_next(void);

#endif
