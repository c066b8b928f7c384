/*
 * What peers say: messages and pushes become events of the core.
 */
#ifndef CMD_SERVE_HEAR_H
#define CMD_SERVE_HEAR_H

#include "link/conn.h"

/* Their ctx is the struct peer. */
extern const struct dl_conn_handlers peer_handlers;

#endif
