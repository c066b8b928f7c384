/*
 * Those whom the syncer has named: who may come for this learner's state, by
 * their keys, for a while.
 */
#ifndef CMD_LEARN_GUESTS_H
#define CMD_LEARN_GUESTS_H

#include <stddef.h>
#include <stdint.h>

#include "link/key.h"
#include "sync/sync.h"

enum { GUESTS = 64 }; /* at once; of more, the one named first is forgotten */

/* All zeroes: none. */
struct guests {
	struct guest {
		unsigned char key[DL_KEY];
		char name[DL_NAME_MAX + 1]; /* as it was named; may be "" */
		int64_t until;
	} guest[GUESTS];
	size_t n;
};

/* One who was named again may come as long again. */
void guests_add(struct guests *g, const char *name,
	const unsigned char key[DL_KEY], int64_t now);
/* The guest who has that key, or NULL. */
const struct guest *guests_find(
	const struct guests *g, const unsigned char key[DL_KEY], int64_t now);

#endif
