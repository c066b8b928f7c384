/*
 * A store made from a checkpoint, and where to look for one.
 */
#ifndef CMD_SYNC_FROM_H
#define CMD_SYNC_FROM_H

#include "cmd/sync/options.h"

/*
 * from is a checkpoint, or a folder of them: the newest that is sound and of
 * the run of the options, when they name one. Others are named and passed
 * over. 73 when there is a store already, 65 when there is no sound one.
 */
int sync_from(const char *from, const struct sync_options *o, struct dl_err *e);

/* The paths of a folder's checkpoints, files *.tar.zst in order of their names,
 * the caller's to free, each and the array; 66 when there is none. */
int sync_list_checkpoints(
	const char *folder, char ***path, size_t *n, struct dl_err *e);
/* 65 for what is no file: a checkpoint is read twice, and a pipe might never
 * end. */
int sync_refuse_other(const char *path, struct dl_err *e);

#endif
