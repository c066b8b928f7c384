/*
 * Offers: links that peers tell of, where the state of a learner can be had.
 * Each is tcp:KEY@HOST:PORT and nothing else, so that no peer's word names a
 * command or a path, and nobody but who has that key can answer there.
 */
#ifndef DL_LINK_OFFER_H
#define DL_LINK_OFFER_H

#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "link/address.h"
#include "sync/sync.h"

/*
 * The link s of a hello's dl.serve: the host may be empty, for the address that
 * the other side sees, and then a->host is "". 76 when it is anything else, or
 * port 0.
 */
int dl_offer_link(struct dl_address *a, const char *s, struct dl_err *e);

struct dl_offer {
	char name[DL_NAME_MAX + 1]; /* the learner's */
	uint64_t clock;		    /* it had when this was said */
	struct dl_address address;  /* own is NULL */
};

/* One line of dl.text of `peers`, NAME CLOCK LINK, appended to out. */
void dl_offer_write(struct dl_buf *out, const struct dl_offer *offer);
/*
 * The next such line of *text, which moves past it: 1, or 0 at the end. Lines
 * of any other form are passed over.
 */
int dl_offer_next(struct dl_offer *offer, const char **text);

#endif
