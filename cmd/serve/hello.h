/*
 * Who is let in: the first message on a connection, and names, each of which
 * belongs to one learner.
 */
#ifndef CMD_SERVE_HELLO_H
#define CMD_SERVE_HELLO_H

#include "cmd/serve/peer.h"

/* The peer has said hello: it is let in, refused, or has to wait. */
int peer_hello(struct peer *peer, const struct dl_message *m, struct dl_err *e);

/* One that waits for a name: has its holder shown life, or been silent long
 * enough? */
void peer_judge(struct peer *peer, int64_t now);

#endif
