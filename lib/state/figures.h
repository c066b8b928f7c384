/*
 * The figures of a run (state/stat.h) as one JSON object: what dl-stat --json
 * prints and a syncer tells its watchers.
 */
#ifndef DL_STATE_FIGURES_H
#define DL_STATE_FIGURES_H

#include "state/stat.h"

/* Appends those that dl_stat_settle has made, and a newline. */
void dl_figures_write(struct dl_buf *out, const struct dl_stat *s);
/*
 * The inverse, into an empty s, which then is for reading only and to be
 * released whatever this returned: 65 when it is no such object. Members have
 * a timeline, but for those of a sum.
 */
int dl_figures_parse(
	struct dl_stat *s, const char *text, size_t n, struct dl_err *e);

#endif
