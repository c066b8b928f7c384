/*
 * The figures of a live syncer.
 */
#ifndef CMD_STAT_LIVE_H
#define CMD_STAT_LIVE_H

#include "link/address.h"
#include "state/stat.h"

/* Into an empty s, to be released whatever this returned: 65 or 76 when what
 * came is not what was asked for, else as client_wait has it. */
int live_fetch(const struct dl_address *a, enum dl_insecure allowed,
	struct dl_stat *s, struct dl_err *e);

#endif
