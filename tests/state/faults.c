#include "faults.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

ssize_t __real_write(int fd, const void *p, size_t n);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_unlink(const char *path);

static enum fault armed;
static int calls, fault_at, watching;
static struct dl_buf calls_made;

void faults_arm(enum fault kind, int at)
{
	armed = kind;
	fault_at = at;
	calls = 0;
	watching = 1;
	dl_buf_clear(&calls_made);
}

int faults_disarm(void)
{
	watching = 0;
	return calls;
}

const char *faults_log(void)
{
	return dl_buf_cstr(&calls_made);
}

/* The folder and name at the end of path, without the numbers of a name. */
static void note(const char *call, const char *path)
{
	const char *place = path ? strrchr(path, '/') : NULL;

	dl_buf_printf(&calls_made, "%s%s", calls_made.len ? " " : "", call);
	if (!place)
		return;
	if (strstr(path, "/global/"))
		place = "/global";
	else if (strstr(path, "/momentum/"))
		place = "/momentum";
	else if (strstr(path, "/error/"))
		place = "/error";
	dl_buf_printf(&calls_made, ":%s", place + 1);
}

static enum fault next(const char *call, const char *path)
{
	if (!watching)
		return FAULT_NONE;
	note(call, path);
	return ++calls == fault_at ? armed : FAULT_NONE;
}

static int fails(const char *call, const char *path)
{
	enum fault f = next(call, path);

	if (f == FAULT_DIE)
		_exit(9);
	errno = ENOSPC;
	return f == FAULT_FAIL;
}

/* Death comes half way through a write. */
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	enum fault f = next("write", NULL);

	if (f == FAULT_DIE)
		_exit(__real_write(fd, p, n / 2) < 0 ? 1 : 9);
	errno = ENOSPC;
	return f == FAULT_FAIL ? -1 : __real_write(fd, p, n);
}

/* The disk is not asked: no test pulls the plug. */
int __wrap_fsync(int fd)
{
	(void)fd;
	return fails("fsync", NULL) ? -1 : 0;
}

int __wrap_rename(const char *from, const char *to)
{
	return fails("rename", to) ? -1 : __real_rename(from, to);
}

int __wrap_unlink(const char *path)
{
	return fails("unlink", path) ? -1 : __real_unlink(path);
}
