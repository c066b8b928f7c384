/*
 * Taking a file in pieces (dl-protocol(7), FETCHING): the other side of
 * cmd/fetch/give.h. The caller says which ranges it wants; they are asked for
 * in that order, and what comes is checked and written where it belongs in a
 * file of the caller's. When the connection is lost, the ranges that are not
 * whole can be had from somebody else.
 */
#ifndef CMD_FETCH_TAKE_H
#define CMD_FETCH_TAKE_H

#include <stddef.h>
#include <stdint.h>

#include "link/conn.h"

struct take {
	int fd;	       /* borrowed */
	int64_t shift; /* what is at offset at the giver's is at offset + shift
			* in it; 0 unless set after take_init */
	/* private */
	struct take_range {
		uint64_t offset, bytes;
	} * range;
	size_t ranges, cap;
	struct take_place {
		size_t range;
		uint64_t at; /* bytes of that range before it */
	} asked, got;	     /* how far */
	unsigned out;	     /* fetches that are not answered */
	unsigned char *data; /* of the part that comes; DL_FETCH_BYTES */
};

/* Writes to fd. */
void take_init(struct take *t, int fd);
void take_release(struct take *t);

/* Wants bytes > 0 bytes at offset too, which `state` said are there. */
void take_range(struct take *t, uint64_t offset, uint64_t bytes);
/* How many of the ranges, from the first, are whole. */
size_t take_whole_ranges(const struct take *t);

/* Asks over c for what may be asked for; when ranges were added. */
void take_ask(struct take *t, struct dl_conn *c);

/* For the handlers of a connection, when a part begins and is whole: 76 when it
 * is not what was asked for or not what its hash names, 74 when it cannot be
 * written. */
int take_begin(struct take *t, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e);
int take_part(struct take *t, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e);

#endif
