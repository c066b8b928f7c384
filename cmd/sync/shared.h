/*
 * Arrays that several connections read while the next one is made: freed when
 * it has been replaced and the last reader is done.
 */
#ifndef CMD_SYNC_SHARED_H
#define CMD_SYNC_SHARED_H

#include "cmd/shelf.h"

struct shared {
	void *data;
	size_t bytes;
	unsigned readers;
	/* private */
	struct shelf *shelf;
	int old; /* another has taken its place */
};

struct shared *shared_new(struct shelf *shelf, size_t bytes);
/* Its owner needs it no longer; NULL is fine. */
void shared_retire(struct shared *s);

struct shared *shared_read(struct shared *s); /* s, until shared_done */
void shared_done(struct shared *s);

#endif
