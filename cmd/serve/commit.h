/*
 * Commits: what was merged is written by a thread while rounds of other
 * fragments go on; when HEAD names it the core hears of it, and through the
 * core everybody. One at a time, in the order of the merges.
 */
#ifndef CMD_SERVE_COMMIT_H
#define CMD_SERVE_COMMIT_H

#include <stdint.h>

#include "base/err.h"

struct server;
struct commits;

int commits_begin(struct server *s, struct dl_err *e);
/* Gives up those that are not done yet. */
void commits_end(struct commits *c);

/* Fragment p was merged: till it is committed nobody is told of it. */
void commits_add(struct server *s, uint32_t p);
int commits_has(const struct server *s, uint32_t p);
/* Starts the next; one that failed is tried again after a pause. */
void commits_work(struct server *s, int64_t now);
int64_t commits_wake(const struct server *s);
/* Waits for all, unless one fails. */
void commits_finish(struct server *s);

#endif
