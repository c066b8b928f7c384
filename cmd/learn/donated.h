/*
 * What a learner begins with when a peer gives it: that peer's state, fetched
 * before the learner takes part, imported by its trainer. The file lies in a
 * scratch folder of its own, since it is large and goes away.
 */
#ifndef CMD_LEARN_DONATED_H
#define CMD_LEARN_DONATED_H

#include <stdint.h>

#include "cmd/fetch/newcomer.h"
#include "train/scratch.h"

struct learner;

struct donated {
	struct newcomer *newcomer; /* NULL: not (any more) at it */
	struct dl_scratch scratch;
	int fd;
	char *path; /* of the state; NULL: none */
	/* What it says of itself. */
	char run[DL_NAME_MAX + 1], layout[DL_HASH_HEX];
	uint64_t clock;
	uint32_t fragments;
	struct dl_version *versions;
};
#define DONATED_INIT                                                           \
	{                                                                      \
		.scratch = DL_SCRATCH_INIT, .fd = -1                           \
	}

/* Looks for a peer that gives its state. 71. */
int donated_begin(struct learner *l, struct dl_err *e);
/* Before each turn of the loop: 1 while the syncer is to wait. */
int donated_work(struct learner *l, int64_t now);
int64_t donated_wake(const struct learner *l); /* meanwhile */

/* What hello says before there is a core: what the state is. */
void donated_hello(const struct learner *l, struct dl_message *hello);
/* If there is a state, it is the trainer's, and its values the anchors. 76 when
 * the syncer has another layout now; 74. */
int donated_use(struct learner *l, struct dl_err *e);
/* It is of no more use. */
void donated_release(struct learner *l);

#endif
