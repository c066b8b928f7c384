/*
 * Virtual time: what happens next, in order of time and then of asking.
 */
#ifndef DL_SIM_QUEUE_H
#define DL_SIM_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct dl_queue_item {
	int64_t at;
	uint64_t order;
	void *what; /* the caller's */
};

/* All zeroes is empty. */
struct dl_queue {
	struct dl_queue_item *item; /* a binary heap */
	size_t n, cap;
	uint64_t order;
};

void dl_queue_put(struct dl_queue *q, int64_t at, void *what);
/* The next one and its time; NULL when there is none. */
void *dl_queue_take(struct dl_queue *q, int64_t *at);
/* Frees the heap, not what is still in it. */
void dl_queue_release(struct dl_queue *q);

#endif
