/*
 * What the files of stat.h share, and no other.
 */
#ifndef DL_STATE_STAT_IN_H
#define DL_STATE_STAT_IN_H

#include "state/stat.h"

struct dl_stat_member *dl_stat_find(struct dl_stat *s, const char *name);
/* It goes on in that state. */
void dl_stat_become(
	struct dl_stat *s, struct dl_stat_member *m, enum dl_stat_state state);
/* It was in its state until now; without a step for so long, stalled. */
void dl_stat_charge(struct dl_stat *s, struct dl_stat_member *m);
/* It was in that one until now. */
void dl_stat_spend(
	struct dl_stat *s, struct dl_stat_member *m, enum dl_stat_state state);
void dl_stat_add_counters(struct dl_sync_learner_info *sum,
	const struct dl_sync_learner_info *more);

#endif
