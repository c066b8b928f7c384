/*
 * Giving a file in pieces (dl-protocol(7), FETCHING): who was told of it by
 * `state` asks for pieces by `fetch`, and each goes as a `part`, in the order
 * in which they were asked for. Errands read and hash them, so that the loop
 * goes on; one is read while another is sent, and no more is held in memory.
 */
#ifndef CMD_FETCH_GIVE_H
#define CMD_FETCH_GIVE_H

#include <stdint.h>

#include "link/conn.h"
#include "link/errand.h"

struct give;

/* Gives the first size bytes of fd, which stay as they are, over c. NULL with
 * 71. c and errands are borrowed until give_free, fd is not. */
struct give *give_new(struct dl_conn *c, struct dl_errands *errands, int fd,
	uint64_t size, struct dl_err *e);
/* Nothing more is sent; before or after c is released. NULL is fine. */
void give_free(struct give *g);

/* What c has brought, a `fetch`: 76 when that is not inside the file, or more
 * at once than may be. From within its handlers, or not. */
int give_fetch(struct give *g, const struct dl_message *m, struct dl_err *e);

/* 0, or 74 with the reason why the file cannot be read: nothing more comes. */
int give_failed(const struct give *g, struct dl_err *e);
/* Bytes of the file that have been sent. */
uint64_t give_sent(const struct give *g);

#endif
