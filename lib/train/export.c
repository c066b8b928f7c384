#include "train/export.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"
#include "train/store.h"

enum { PAGE = 4096 }; /* of memory, or a part of one */

/* Waits for the thread, which leaves off where it is. */
static void halt(struct dl_export *x)
{
	if (!x->running)
		return;
	atomic_store(&x->halt, 1);
	pthread_join(x->thread, NULL);
	x->running = 0;
}

void dl_export_release(struct dl_export *x)
{
	halt(x);
	if (x->map)
		munmap(x->map, x->size);
	if (x->fd >= 0)
		close(x->fd);
	*x = (struct dl_export)DL_EXPORT_INIT;
}

/* The first touch of a page can cost far more than copying it: virtual
 * machines have tables of their own, which mmap does not fill. Nothing is
 * written to the file meanwhile, so each byte stays what it is. */
static void *touch(void *arg)
{
	struct dl_export *x = arg;
	volatile unsigned char *p = x->map;

	for (; x->touched < x->end && !atomic_load(&x->halt);
		x->touched += PAGE)
		p[x->touched] = p[x->touched];
	return NULL;
}

static int start(struct dl_export *x)
{
	int failed;

	atomic_store(&x->halt, 0);
	failed = dl_thread_start(&x->thread, touch, x);
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
	x->size = x->end = (size_t)st.st_size;
	x->map = mmap(
		NULL, x->size, PROT_READ | PROT_WRITE, MAP_SHARED, x->fd, 0);
	if (x->map == MAP_FAILED) {
		x->map = NULL;
		return dl_fail_sys(e, DL_IOERR, "%s: cannot be mapped", path);
	}
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

/* Into the file that is mapped. Where it has not been touched, a copy takes
 * longer than the system's own. */
static int write_prepared(struct dl_export *x, struct dl_tensors *r,
	struct dl_pool *pool, off_t size, const char *path, struct dl_err *e)
{
	size_t bytes = dl_tensors_size(r);

	if (x->touched < bytes) {
		int rc = dl_tensors_scratch(r, path, e);

		x->end = bytes < x->size ? bytes : 0;
		if (!rc)
			start(x);
		return rc;
	}
	if (resize(x->fd, size, (off_t)bytes))
		return dl_fail(e, DL_IOERR, "%s: no room", path);
	dl_tensors_copy(r, pool, x->map);
	return 0;
}

int dl_export_write(struct dl_export *x, const struct dl_training *t,
	const char *path, struct dl_err *e)
{
	struct dl_tensors r = DL_TENSORS_INIT;
	off_t size;
	int rc;

	halt(x);
	dl_store_add_state(&r, t);
	if (is_prepared(x, path, &size))
		rc = write_prepared(x, &r, t->pool, size, path, e);
	else
		rc = dl_tensors_scratch(&r, path, e);
	dl_tensors_release(&r);
	return rc;
}
