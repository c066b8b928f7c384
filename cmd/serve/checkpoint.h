/*
 * --checkpoint: now and then what HEAD names is packed into one more file of a
 * folder, by a thread of its own while rounds go on, and the oldest of this run
 * are removed.
 */
#ifndef CMD_SERVE_CHECKPOINT_H
#define CMD_SERVE_CHECKPOINT_H

#include <stdint.h>

#include "base/err.h"

struct server;
struct checkpoints;

/* Into s->checkpoints, NULL when none are asked for; 71. */
int checkpoints_begin(struct server *s, struct dl_err *e);
void checkpoints_end(struct checkpoints *c); /* NULL is fine */

/* Begins one when it is time. */
void checkpoints_work(struct server *s, int64_t now);
int64_t checkpoints_wake(const struct server *s);

/* One more in place of one that is being made, and then none: of how the syncer
 * leaves the run. */
void checkpoints_last(struct server *s);
/* And not even that: the one being made is given up, and none is begun. */
void checkpoints_give_up(struct server *s);
/* Is one being made, or the last yet to be? */
int checkpoints_busy(const struct server *s);

#endif
