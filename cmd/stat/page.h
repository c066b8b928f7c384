/*
 * A run as one page of HTML that needs nothing else: no script, no other file.
 */
#ifndef CMD_STAT_PAGE_H
#define CMD_STAT_PAGE_H

#include "state/stat.h"

void page_put(struct dl_buf *out, const struct dl_stat *s);

#endif
