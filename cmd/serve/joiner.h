/*
 * Joiners: learners to be, who are told where the run is and whose state they
 * may ask for, and leave again.
 */
#ifndef CMD_SERVE_JOINER_H
#define CMD_SERVE_JOINER_H

#include "cmd/serve/peer.h"

enum { JOINER_DONORS = 8 }; /* named to one, at most */

/* The learner says in its hello where its state can be had; a host that it does
 * not name is the one that it comes from. "" or NULL: nowhere. */
void joiner_keep_serve(struct peer *learner, const char *serve);

/* Tells peer of those who serve their state, and them of peer. */
void joiner_begin(
	struct peer *peer, const struct dl_message *hello, int64_t now);

#endif
