/*
 * A global that comes over a socket: the values of a fragment, or an update of
 * the values that are here.
 */
#ifndef CMD_LEARN_COMING_H
#define CMD_LEARN_COMING_H

#include "link/message.h"
#include "tensor/coded.h"

struct learner;

struct coming {
	void *data; /* NULL: nothing comes */
	size_t bytes;
	struct dl_coded update;
};

/* It begins: where its data go, NULL when they are of no use. 65 or 76 when it
 * is none. */
int coming_begin(struct learner *l, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e);
/* It is there. */
void coming_whole(struct learner *l, const struct dl_message *m);
/* It never will be. */
void coming_lost(struct learner *l);

#endif
