/*
 * What the spool shows of the run, which a store that is an older copy does not
 * know: nothing that was shown is made again otherwise.
 */
#ifndef CMD_RUN_RECALL_H
#define CMD_RUN_RECALL_H

#include "cmd/run/pass.h"

/* Does the spool show later versions than the store has? */
int recall_needed(const struct pass *p);
/* Has that process been answered before? */
int recall_knows(const struct pass *p, const char *name, uint64_t instance);
/* Raises epoch and clock to what was shown, and what was settled of pushes:
 * their learners have dropped them. */
void recall(const struct pass *p, struct dl_sync_saved *saved);

#endif
