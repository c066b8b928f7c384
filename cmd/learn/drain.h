/*
 * Leaving on SIGTERM: what a learner has done is delivered within --drain, and
 * what could not be is said.
 */
#ifndef CMD_LEARN_DRAIN_H
#define CMD_LEARN_DRAIN_H

#include <stdint.h>

#include "link/message.h"

struct learner;

struct drain {
	int64_t at;    /* when it must be done; INT64_MAX: not asked for */
	uint64_t lost; /* own steps that were lost before it was asked for */
	int dropped;   /* the syncer has refused something since */
};
#define DRAIN_INIT                                                             \
	{                                                                      \
		INT64_MAX, 0, 0                                                \
	}

int drain_asked(const struct learner *l);
/* The first time: deliver, then leave. A second one later is an order. */
void drain_ask(struct learner *l, int64_t now);
/* Gives up when its time is over. */
void drain_work(struct learner *l, int64_t now);
/* The syncer's answer to a push. */
void drain_taken(struct learner *l, const struct dl_message *m);
/* At the end: what was not delivered is said, and makes the code 75. */
void drain_report(struct learner *l);
int64_t drain_wake(const struct learner *l);

#endif
