/*
 * What a trainer hands over: the pushes that it has written out.
 */
#ifndef CMD_LEARN_HANDOVER_H
#define CMD_LEARN_HANDOVER_H

#include <stdint.h>

struct learner;

/* The file in which they pass, to send or to apply; to be freed. */
char *handover_file(const struct learner *l, const char *what, uint32_t p);
/* Hands on the pushes that the trainer has written out. Done while it trains,
 * or before an apply moves the same anchor. */
void handover_read(struct learner *l, int64_t now);
/* What a trainer that died had not handed over never will be. */
void handover_lose(struct learner *l, int64_t now);

#endif
