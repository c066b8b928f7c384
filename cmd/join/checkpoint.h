/*
 * The model that a checkpoint holds.
 */
#ifndef CMD_JOIN_CHECKPOINT_H
#define CMD_JOIN_CHECKPOINT_H

#include "base/err.h"
#include "tensor/save.h"

/* Saves the values in the checkpoint at path; 65 when it is damaged. */
int join_checkpoint(
	const char *path, const struct dl_save *s, struct dl_err *e);

#endif
