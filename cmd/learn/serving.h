/*
 * A donor: a learner that gives its state to those who join, as dl-protocol(7)
 * has it under FETCHING. It listens where --serve says, tells the syncer so,
 * and lets in whom the syncer has named.
 */
#ifndef CMD_LEARN_SERVING_H
#define CMD_LEARN_SERVING_H

#include "cmd/learn/export.h"
#include "cmd/learn/guests.h"
#include "link/address.h"
#include "link/bucket.h"
#include "link/door.h"
#include "link/message.h"
#include "link/rate.h"

struct learner;
struct visitor;

struct serving {
	int listener; /* -1: it serves nobody */
	struct dl_address address;
	char offer[DL_ADDRESS_MAX]; /* as hello says it */
	int64_t accept_at;	    /* nobody is taken in before */
	struct dl_errands *errands;
	struct dl_door door;
	struct dl_bucket lines; /* in the log */
	struct dl_rate rate;	/* of all that is given */
	struct guests guests;
	struct export_file file;
	struct visitor *visitor;
};

/* Listens, if the options say so. serving_release afterwards, in any case. */
int serving_begin(struct learner *l, struct dl_err *e);
void serving_release(struct learner *l);

/* What hello says of it; NULL: nothing. */
const char *serving_offer(const struct learner *l);
/* The syncer has named a guest. */
void serving_guest(struct learner *l, const struct dl_message *m, int64_t now);

void serving_work(struct learner *l, int64_t now);
int64_t serving_wake(const struct learner *l, int64_t now);

#endif
