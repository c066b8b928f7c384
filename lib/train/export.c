#include "train/export.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "train/store.h"

enum { PAGE = 4096 }; /* the least that there is */

void dl_export_release(struct dl_export *x)
{
	if (x->running)
		pthread_join(x->thread, NULL);
	if (x->map)
		munmap(x->map, x->size);
	if (x->fd >= 0)
		close(x->fd);
	*x = (struct dl_export)DL_EXPORT_INIT;
}

/* A page's first write costs more than copying the page, hence all at once, and
 * not while training waits. A virtual machine may take as long although the
 * page is mapped: it has page tables of its own, which only a write fills. */
static void *map(void *arg)
{
	struct dl_export *x = arg;
	volatile unsigned char *at;

	x->map = mmap(NULL, x->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_POPULATE, x->fd, 0);
	if (x->map == MAP_FAILED)
		x->map = NULL;
	at = x->map;
	for (size_t i = 0; at && i < x->size; i += PAGE)
		at[i] = at[i];
	return NULL;
}

static int start(struct dl_export *x)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&x->thread, NULL, map, x);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	x->running = !failed;
	return failed;
}

int dl_export_prepare(struct dl_export *x, const char *path, struct dl_err *e)
{
	struct stat st;

	dl_export_release(x);
	x->fd = open(path, O_RDWR | O_CLOEXEC);
	if (x->fd < 0 || fstat(x->fd, &st))
		return dl_fail_sys(e, DL_IOERR, "%s", path);
	x->size = (size_t)st.st_size;
	if (start(x))
		return dl_fail(e, DL_OSERR, "cannot start a thread");
	return 0;
}

/* Is path the file that is mapped? How large it is now. */
static int is_prepared(const struct dl_export *x, const char *path, off_t *size)
{
	struct stat a, b;

	if (!x->map || fstat(x->fd, &a) || stat(path, &b) ||
		a.st_ino != b.st_ino || a.st_dev != b.st_dev)
		return 0;
	*size = a.st_size;
	return 1;
}

/* The record's header has numbers in it, so no two are quite as long. */
static int resize(int fd, off_t from, off_t to)
{
	return to > from ? posix_fallocate(fd, from, to - from)
			 : ftruncate(fd, to);
}

int dl_export_write(struct dl_export *x, const struct dl_training *t,
	const char *path, struct dl_err *e)
{
	struct dl_tensors r = DL_TENSORS_INIT;
	size_t bytes;
	off_t size;
	int rc = 0;

	if (x->running)
		pthread_join(x->thread, NULL);
	x->running = 0;
	dl_store_add_state(&r, t);
	bytes = dl_tensors_size(&r);
	if (!is_prepared(x, path, &size) || bytes > x->size)
		rc = dl_tensors_scratch(&r, path, e);
	else if (resize(x->fd, size, (off_t)bytes))
		rc = dl_fail(e, DL_IOERR, "%s: no room", path);
	else
		dl_tensors_copy(&r, x->map);
	dl_tensors_release(&r);
	return rc;
}
