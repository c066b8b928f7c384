/*
 * Observers: they are sent the model as it is, and say nothing more. Each may
 * take as long as its link needs, but keeps its place only while it reads.
 */
#ifndef CMD_SERVE_OBSERVE_H
#define CMD_SERVE_OBSERVE_H

#include "cmd/serve/peer.h"

enum {
	OBSERVERS = 64,	  /* at once */
	OBSERVER_DEAD = 6 /* times --dead: nothing went out, it is sent away */
};

/* How long one may take nothing. */
int64_t observe_patience(const struct server *s);
/* Is there room for one more? Of too many, the one who has not read for longest
 * goes. */
int observe_enter(struct server *s, int64_t now);
void observe_begin(struct peer *peer, int64_t now);

/* Sends it away if it does not read. */
void observe_work(struct peer *peer, int64_t now);

#endif
