/*
 * A learner's whole state, of a live run, for a trainer that is not run by
 * dl-learn, or to keep.
 */
#ifndef CMD_JOIN_STATE_H
#define CMD_JOIN_STATE_H

#include "base/err.h"
#include "link/address.h"

/*
 * Takes the state of a learner of the run of that syncer, which the syncer
 * names, into a folder, which is made: layout.tsv, state.safetensors, and
 * join.json, which has its name last. 75 when no learner gives its state.
 */
int join_state(const struct dl_address *syncer, enum dl_insecure allowed,
	const struct dl_key *key, const char *folder, struct dl_err *e);

#endif
