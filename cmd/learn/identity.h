/*
 * Who a learner is: its name, and the slot of the data that it trains on.
 */
#ifndef CMD_LEARN_IDENTITY_H
#define CMD_LEARN_IDENTITY_H

#include "base/err.h"
#include "link/message.h"

struct learner;

/* What the options say, before the first welcome. */
void identity_begin(struct learner *l);
/* What a welcome adds: who is of a group gets its name and slot with the first
 * and keeps them; 76 when a later one has another name. */
int identity_take(
	struct learner *l, const struct dl_message *welcome, struct dl_err *e);

#endif
