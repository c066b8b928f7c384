/*
 * The current global model of a live run, from its syncer or its spool.
 */
#ifndef CMD_JOIN_LIVE_H
#define CMD_JOIN_LIVE_H

#include "base/err.h"
#include "link/address.h"
#include "tensor/save.h"

/* 1 when a source is a link and not a file. */
int join_is_link(const char *source);

/* Asks the syncer at that address for the model, or takes it from the spool,
 * and saves it. */
int join_live(const struct dl_address *a, enum dl_insecure allowed,
	const struct dl_save *s, struct dl_err *e);

#endif
