/*
 * The run's figures, for watchers: each is sent them once. They are made no
 * more than once a second, however many ask, and all who read the same share
 * one copy.
 */
#ifndef CMD_SERVE_FIGURES_H
#define CMD_SERVE_FIGURES_H

#include "cmd/serve/peer.h"

struct figures;

/* Begins to send them; peer is an observer from now on. */
void figures_begin(struct peer *peer, int64_t now);
/* After all peers are gone. */
void figures_free(struct server *s);

#endif
