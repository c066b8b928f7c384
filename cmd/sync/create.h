/*
 * The first start of a run: a store made from a model and a layout.
 */
#ifndef CMD_SYNC_CREATE_H
#define CMD_SYNC_CREATE_H

#include "cmd/sync/options.h"

/* 64 when the options name no model. */
int sync_create(const struct sync_options *o, struct dl_err *e);

#endif
