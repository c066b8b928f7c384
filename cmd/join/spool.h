/*
 * The newest model that a spool publishes.
 */
#ifndef CMD_JOIN_SPOOL_H
#define CMD_JOIN_SPOOL_H

#include "tensor/layout.h"

/*
 * The layout and the values of all its fragments, packed arrays of
 * dl_big_alloc; whatever is there is the caller's to release, also after a
 * failure. 66, 65 or 74 when they are not to be had.
 */
int join_spool(const char *folder, struct dl_layout *l, float ***values,
	struct dl_err *e);

#endif
