/*
 * A store made from a checkpoint.
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

#endif
