/*
 * Where a syncer started again: whether the state that it then read is the one
 * that the tape has led to.
 */
#ifndef CMD_REPLAY_STATE_H
#define CMD_REPLAY_STATE_H

#include "state/tape.h"

/* What is durable once a core has been made by that start. */
void state_begin(struct dl_sync_saved *out, const struct dl_tape_start *start);

/* 0 when here is what start goes on from, or DL_NO with the first difference.
 * Of a run over a spool the learners are not compared: what the spool shows of
 * them counts, too. */
int state_check(const struct dl_sync_saved *here,
	const struct dl_tape_start *start, struct dl_err *e);

#endif
