/*
 * What a person wants to see first: the run in a few lines, and a table.
 */
#ifndef CMD_STAT_SUMMARY_H
#define CMD_STAT_SUMMARY_H

#include "state/stat.h"

void summary_put(struct dl_buf *out, const struct dl_stat *s);
/* Warns of what is not as it should be. */
void summary_warn(const struct dl_stat *s);

#endif
