/*
 * What peers say: messages and pushes become events of the core.
 */
#ifndef CMD_SERVE_HEAR_H
#define CMD_SERVE_HEAR_H

#include "cmd/serve/peer.h"

enum {
	HEAR_BURST = 20000, /* messages at once, and one a fragment */
	HEAR_RATE = 5000,   /* more of them a second */
	HEAR_WANTS = 8,	    /* want at once, and one a fragment; then one a
			     * second */
};

/* Their ctx is the struct peer. */
extern const struct dl_conn_handlers peer_handlers;
void hear_came(void *peer, uint64_t bytes); /* config.came */

/* The peer was sent what takes a message to answer: it may say one more. */
void hear_answer(struct peer *peer);

#endif
