/*
 * The charts of the page: what the run was like over time.
 */
#ifndef CMD_STAT_PLOTS_H
#define CMD_STAT_PLOTS_H

#include "state/stat.h"

/* How long the run has lasted, in seconds. */
double plots_seconds(const struct dl_stat *s);
void plots_put(struct dl_buf *out, const struct dl_stat *s);

#endif
