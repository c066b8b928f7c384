/*
 * Virtual time: what happens next, in order of time and then of asking.
 *
 * Most of what a fleet does are messages, which take one of a few times: those
 * of one time come in the order they were sent in, so a line of their own does
 * for them, and costs less than the heap.
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

enum { DL_QUEUE_LINES = 4 };

/* Items that were all put so long after their now, in a ring. */
struct dl_queue_line {
	int64_t after;
	struct dl_queue_item *item;
	size_t first, n, cap; /* cap is a power of two, or 0 */
};

/* All zeroes is empty. */
struct dl_queue {
	struct dl_queue_line line[DL_QUEUE_LINES];
	struct dl_queue_item *item; /* a binary heap */
	size_t n, cap;
	uint64_t order;
	const struct dl_queue_line *last; /* that one was taken from; NULL: the
					   * heap */
};

void dl_queue_put(struct dl_queue *q, int64_t at, void *what);
/* The same at now + after; now never falls. For times that are usual. */
void dl_queue_put_after(
	struct dl_queue *q, int64_t now, int64_t after, void *what);
/* The next one and its time; NULL when there is none. */
void *dl_queue_take(struct dl_queue *q, int64_t *at);
/* What may well be taken after k others; NULL when nobody knows. */
const void *dl_queue_guess(const struct dl_queue *q, size_t k);
/* Frees the heap, not what is still in it. */
void dl_queue_release(struct dl_queue *q);

#endif
