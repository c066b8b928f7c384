/*
 * The stretches of a member's timeline in which it was in one state.
 */
#ifndef CMD_STAT_SPANS_H
#define CMD_STAT_SPANS_H

#include "state/stat.h"

struct span {
	enum dl_stat_state state;
	size_t first, end; /* buckets */
};

/* The next one, of the state that begins at bucket end; 0 when there is none.
 * Begin with one that is all zero. */
int span_next(const struct dl_stat_member *m, struct span *span);

#endif
