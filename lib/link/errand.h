/*
 * Errands: work that may block, such as files on a network, done by one thread
 * in the order in which it was given, and told of in the loop.
 */
#ifndef DL_LINK_ERRAND_H
#define DL_LINK_ERRAND_H

#include "link/loop.h"

/* The first member of what is to be done. */
struct dl_errand {
	/* In the thread, which touches nothing but this errand. */
	void (*run)(struct dl_errand *errand);
	/* In the loop, afterwards, or when it was dropped; may free it. */
	void (*done)(struct dl_errand *errand);
	int dropped;		/* it was not run */
	struct dl_errand *next; /* private */
};

struct dl_errands;

/* NULL with 71 in e. The thread takes no signals. */
struct dl_errands *dl_errands_new(struct dl_loop *loop, struct dl_err *e);
void dl_errands_add(struct dl_errands *list, struct dl_errand *errand);
/* How many are not done yet. */
size_t dl_errands_left(const struct dl_errands *list);
/* Waits till all are done, those too that are given meanwhile. Of other
 * things in the loop nothing happens. */
void dl_errands_wait(struct dl_errands *list);
/* Waits for the one that runs and drops the others. */
void dl_errands_free(struct dl_errands *list);

#endif
