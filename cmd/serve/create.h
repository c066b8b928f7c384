/*
 * The first start of a run: a store made from a model and a layout.
 */
#ifndef CMD_SERVE_CREATE_H
#define CMD_SERVE_CREATE_H

#include "cmd/serve/options.h"

/* 64 when the options name no model. */
int serve_create(const struct serve_options *o, struct dl_err *e);

#endif
