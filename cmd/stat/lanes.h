/*
 * What each learner did when, as inline SVG: a lane each, one below the other.
 */
#ifndef CMD_STAT_LANES_H
#define CMD_STAT_LANES_H

#include "state/stat.h"

/* Of a run that has lasted so many seconds. */
void lanes_put(struct dl_buf *out, const struct dl_stat *s, double seconds);

#endif
