/*
 * A state for a peer. Training stands still while it is written, so it should
 * cost no more than a copy: once told where (`prepare` of dl-trainer(7)), the
 * trainer maps that file and touches it all beside training; told nothing, or
 * of another file, it writes.
 */
#ifndef DL_TRAIN_EXPORT_H
#define DL_TRAIN_EXPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

#include "train/training.h"

struct dl_export { /* private */
	int fd;	   /* -1: nothing is prepared */
	void *map; /* of all of it; NULL */
	size_t size;
	size_t touched, end; /* bytes of it, from the front; of the file */
	pthread_t thread;
	int running; /* the thread, which touches the rest */
	atomic_int halt;
};
#define DL_EXPORT_INIT                                                         \
	{                                                                      \
		.fd = -1                                                       \
	}

/* An export to path will follow: the file is there, in memory, at least as
 * large as the state, and nobody else makes it smaller. 71 or 74. */
int dl_export_prepare(struct dl_export *x, const char *path, struct dl_err *e);
/* Writes t's state to path, as dl_store_save_scratch does. */
int dl_export_write(struct dl_export *x, const struct dl_training *t,
	const char *path, struct dl_err *e);
void dl_export_release(struct dl_export *x);

#endif
