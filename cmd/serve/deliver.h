/*
 * The way down: the newest version of a fragment goes to a peer as an update,
 * if there is one and the peer has the version that it starts from, else as
 * values.
 */
#ifndef CMD_SERVE_DELIVER_H
#define CMD_SERVE_DELIVER_H

#include "cmd/serve/peer.h"

/* Queues fragment p for peer, made in the round of that step; one that still
 * waits there is replaced. Final values go whole. */
void deliver(struct peer *peer, uint32_t p, uint64_t step, int final);

/* The learner lacks fragment p, whatever it was sent. */
void deliver_lost(struct peer *peer, uint32_t p);

#endif
