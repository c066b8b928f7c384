/*
 * The extra streams of a learner's connection: dialled one after another until
 * there are as many as the syncer has granted, and anew when one is lost.
 */
#ifndef CMD_LEARN_STREAMS_H
#define CMD_LEARN_STREAMS_H

#include <stdint.h>

#include "link/conn.h"

struct learner;

struct streams {
	struct dl_conn next; /* the one that is being made */
	int open;	     /* next is */
	unsigned failures;   /* in a row */
	int64_t retry_at;
};

/* Data is striped from now on, if the welcome grants it; 76 when it grants
 * more than was asked for. */
int streams_begin(
	struct learner *l, const struct dl_message *welcome, struct dl_err *e);
void streams_work(struct learner *l, int64_t now);
int64_t streams_wake(const struct learner *l);
/* The connection is over, and what was to join it. */
void streams_end(struct learner *l);

#endif
