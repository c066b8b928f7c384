/*
 * Commits: what was merged is written by a thread while rounds go on, one
 * commit at a time. Once HEAD names a merge the core hears of it, and through
 * the core everybody; with --commit it is told of at once, and HEAD names what
 * there is after so many of them.
 */
#ifndef CMD_SERVE_COMMIT_H
#define CMD_SERVE_COMMIT_H

#include <stdint.h>

#include "base/err.h"

struct server;
struct commits;

int commits_begin(struct server *s, struct dl_err *e);
/* A last try to commit what was told of, which the exit status says to have
 * failed; what nobody was told of is given up. */
void commits_end(struct server *s);

/* Fragment p was merged. */
void commits_add(struct server *s, uint32_t p);
/* It was, and the core has not heard of it: nobody is to be told. */
int commits_has(const struct server *s, uint32_t p);
/* Starts what is due; what has failed is tried again after a pause. */
void commits_work(struct server *s, int64_t now);
int64_t commits_wake(const struct server *s);
/* Commits all, and waits for it, unless that fails. */
void commits_finish(struct server *s);

#endif
