/*
 * Those whose state a newcomer may take, as the syncer names them, and what has
 * come of asking them.
 */
#ifndef CMD_FETCH_DONORS_H
#define CMD_FETCH_DONORS_H

#include <stddef.h>

#include "link/offer.h"

struct donor {
	struct dl_offer offer;
	unsigned tries;
	size_t rank; /* in the last list; SIZE_MAX: not there */
	int barred;  /* what it gives is of no use */
};

struct donors {
	struct donor *donor;
	size_t donors, cap;
};

void donors_release(struct donors *d);

/* A new list, the text of `peers`. */
void donors_hear(struct donors *d, const char *text);
/* How many of it may be asked. */
size_t donors_open(const struct donors *d);
/* Whom to ask next: the one tried least, of these the first in the list; NULL
 * when there is nobody. Valid until the next list. */
struct donor *donors_next(struct donors *d);

#endif
