/*
 * The two halves of a connection, for conn.c.
 */
#ifndef DL_LINK_CONN_IO_H
#define DL_LINK_CONN_IO_H

#include "link/conn.h"

/* Reads what has come, a bounded amount, and calls the handlers; 0 or why the
 * connection is over. */
int dl_conn_read(struct dl_conn *c, int64_t now, struct dl_err *e);

/* 1 when there is something to write, a heartbeat included. */
int dl_conn_has_output(const struct dl_conn *c);
/* Writes what the socket takes, a bounded amount; 0 or 69. */
int dl_conn_write(struct dl_conn *c, int64_t now, struct dl_err *e);
/* Drops all that waits. */
void dl_conn_drop_output(struct dl_conn *c);

#endif
