#include "train/mapped.h"

#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MAP_POPULATE
#define MAP_POPULATE 0 /* pages are mapped as they are touched */
#endif

void *dl_mapped_find(const struct dl_mapped *m, int fd)
{
	struct stat st;

	/* While it is mapped no other file gets its number. */
	return m->at && !fstat(fd, &st) && st.st_ino == m->inode &&
			       st.st_dev == m->device &&
			       (size_t)st.st_size == m->size
		       ? m->at
		       : NULL;
}

void *dl_mapped_take(struct dl_mapped *m, int fd, int prot)
{
	struct stat st;
	void *at;

	dl_mapped_release(m);
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return NULL;
	at = mmap(NULL, (size_t)st.st_size, prot, MAP_SHARED | MAP_POPULATE, fd,
		0);
	if (at == MAP_FAILED)
		return NULL;
	*m = (struct dl_mapped){at, (size_t)st.st_size, st.st_dev, st.st_ino};
	return at;
}

void dl_mapped_release(struct dl_mapped *m)
{
	if (m->at)
		munmap(m->at, m->size);
	*m = (struct dl_mapped){0};
}
