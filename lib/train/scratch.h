/*
 * The folder in which a learner and its trainer hand tensors to each other:
 * a few flat files, overwritten in place, in memory where the system has a
 * file system there.
 */
#ifndef DL_TRAIN_SCRATCH_H
#define DL_TRAIN_SCRATCH_H

#include <stdint.h>

#include "base/err.h"

struct dl_scratch {
	char *path; /* owned */
	int fd;	    /* of the folder; its lock says that somebody lives here */
};
#define DL_SCRATCH_INIT                                                        \
	{                                                                      \
		NULL, -1                                                       \
	}

/*
 * Makes a folder under base that has room for that many bytes, or, with base
 * NULL, under the first of $XDG_RUNTIME_DIR, /dev/shm, $TMPDIR and /tmp that
 * has. Folders that killed learners of this user left there are removed. 73
 * when there is no such place.
 */
int dl_scratch_open(struct dl_scratch *s, const char *base, uint64_t room,
	struct dl_err *e);

/* Removes the folder and what is in it; no-op when closed. */
void dl_scratch_remove(struct dl_scratch *s);

/* "PATH/NAME"; the caller frees it. */
char *dl_scratch_file(const struct dl_scratch *s, const char *name);

#endif
