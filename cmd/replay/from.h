/*
 * Starts of a syncer that went on from a checkpoint (dl-sync serve --from):
 * which one it was, of those at hand.
 */
#ifndef CMD_REPLAY_FROM_H
#define CMD_REPLAY_FROM_H

#include "state/tape.h"

/*
 * from is a checkpoint, or a folder of them, in which those that cannot be read
 * are passed over. The one whose state start went on from, but for the epoch,
 * which rose: its path, the caller's to free, and the time at which
 * dl_checkpoint_unpack raises it as it did then. DL_NO, without words, when it
 * is none of them.
 */
int replay_from(const char *from, const struct dl_tape_start *start,
	char **path, int64_t *at, struct dl_err *e);

#endif
