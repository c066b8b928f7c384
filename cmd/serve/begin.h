/*
 * What a syncer needs before its loop begins, and leaves behind after it:
 * store, core, tape and listeners.
 */
#ifndef CMD_SERVE_BEGIN_H
#define CMD_SERVE_BEGIN_H

#include "cmd/serve/server.h"

/* server_end afterwards, whatever it returned. */
int server_begin(struct server *s, struct dl_err *e);
void server_end(struct server *s);

#endif
