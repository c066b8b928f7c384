/*
 * The gate: who of those who connect is taken in to say hello, and what the
 * log says of those who are not. Strangers can cost it a few lines a second,
 * whatever they do.
 */
#ifndef CMD_SERVE_GATE_H
#define CMD_SERVE_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "link/door.h"

struct server;
struct dl_authorized;
struct dl_err;

struct gate {
	struct dl_door door;
	size_t inside_most; /* strangers: no hello yet, or a refused one */
	size_t most;	    /* descriptors below which peers are taken in; the
			     * system gives the lowest that is free */
	size_t key_most;    /* connections of one key that are no learners */
	struct dl_bucket lines;
	uint64_t unsaid; /* lines that there was no room for */
	int64_t say_at;	 /* when their number is told; INT64_MAX: none */
};

void gate_begin(struct gate *g);

/* May the one at fd be taken in? If there are too many strangers, or too few
 * descriptors, the oldest stranger goes. 0: it may not, and that has been
 * noted. */
int gate_enter(struct server *s, int fd, int64_t now);
/* May it stay as one more stream? Those have half, so that learners get in. */
int gate_spares(const struct gate *g, int fd);

/* May that key have one more connection? 75: it has too many already. */
int gate_key(const struct server *s, const struct dl_authorized *may,
	struct dl_err *e);

/* A line about somebody who is no learner, or the count of those left out. */
void gate_note(struct server *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void gate_work(struct gate *g, int64_t now);
int64_t gate_wake(const struct gate *g);

#endif
