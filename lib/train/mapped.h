/*
 * A scratch file that is mapped. Those that tensors pass through are
 * overwritten in place and used again for as long as a run lasts: in memory
 * that is mapped once, values are copied and added at its speed, where read and
 * write take about twice as long.
 */
#ifndef DL_TRAIN_MAPPED_H
#define DL_TRAIN_MAPPED_H

#include <stddef.h>
#include <sys/types.h>

struct dl_mapped { /* private; all zeroes is none */
	void *at;
	size_t size;
	dev_t device;
	ino_t inode;
};

/* All of that file, if it is the one that is mapped and as long as then; or
 * NULL. */
void *dl_mapped_find(const struct dl_mapped *m, int fd);
/* Maps the file in place of another, to be read or also written (PROT_ of
 * mmap). NULL when it cannot be: then there is read and write. */
void *dl_mapped_take(struct dl_mapped *m, int fd, int prot);
void dl_mapped_release(struct dl_mapped *m);

#endif
