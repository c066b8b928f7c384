/*
 * The crash shim, to be preloaded: it numbers the calls that change files below
 * a folder, and makes one of them the last, or fail (plan.h says how it is
 * asked; undo.h what a power cut undoes). Syncs do not reach the disk.
 *
 * Everything goes straight to the kernel, so that the C library, or what else
 * is preloaded, is never called back. Standard I/O does not pass through here:
 * programs under test write with write(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "plan.h"
#include "undo.h"

static int is_below(const char *path)
{
	size_t n = strlen(crash_root());

	return n && !strncmp(path, crash_root(), n) &&
	       (path[n] == '/' || !path[n]);
}

/* The path of an open file, whatever it is called by now. */
static int path_of(int fd, char path[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, path, PATH_MAX - 1);
	path[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The absolute path of name in the folder at; 1 when it is watched. */
static int locate(int at, const char *name, char path[PATH_MAX])
{
	char base[PATH_MAX], all[2 * PATH_MAX], *end;

	*path = *base = '\0';
	if (!*crash_root() || !name)
		return 0;
	if (*name != '/' && (at == AT_FDCWD ? !getcwd(base, sizeof base)
					    : !path_of(at, base)))
		return 0;
	snprintf(all, sizeof all, "%s/%s", base, name);
	for (end = all + strlen(all); end > all + 1 && end[-1] == '/';)
		*--end = '\0';
	end = strrchr(all, '/');
	*end++ = '\0';
	if (!realpath(*all ? all : "/", base) ||
		snprintf(path, PATH_MAX, "%s/%s", base, end) >= PATH_MAX)
		return 0;
	return is_below(path);
}

static int locate_fd(int fd, char path[PATH_MAX])
{
	int saved = errno, found;

	found = *crash_root() && path_of(fd, path) && is_below(path);
	errno = saved;
	return found;
}

static int is_there(const char *path)
{
	struct stat st;

	return !lstat(path, &st);
}

static int do_open(int at, const char *name, int flags, mode_t mode)
{
	char path[PATH_MAX];
	int fd, there, changes = 0, failed = 0;

	if ((flags & (O_CREAT | O_TRUNC)) && locate(at, name, path)) {
		there = is_there(path);
		changes = there ? flags & O_TRUNC : flags & O_CREAT;
	}
	if (changes) {
		failed = crash_enter(there ? CRASH_TRUNCATE : CRASH_CREATE,
				 path) == CRASH_FAIL;
		if (there && !failed)
			undo_content(path);
	}
	fd = failed ? -1
		    : (int)syscall(SYS_openat, at, name, flags, (long)mode);
	if (changes) {
		if (fd >= 0 && !there)
			undo_name(UNDO_MADE, path, NULL);
		crash_leave();
	}
	return fd;
}

#define MODE(flags, mode)                                                      \
	do {                                                                   \
		va_list ap;                                                    \
		va_start(ap, flags);                                           \
		mode = (flags) & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t)  \
							 : 0;                  \
		va_end(ap);                                                    \
	} while (0)

int open(const char *name, int flags, ...)
{
	mode_t mode;

	MODE(flags, mode);
	return do_open(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...)
{
	mode_t mode;

	MODE(flags, mode);
	return do_open(AT_FDCWD, name, flags, mode);
}

int openat(int at, const char *name, int flags, ...)
{
	mode_t mode;

	MODE(flags, mode);
	return do_open(at, name, flags, mode);
}

int openat64(int at, const char *name, int flags, ...)
{
	mode_t mode;

	MODE(flags, mode);
	return do_open(at, name, flags, mode);
}

int creat(const char *name, mode_t mode)
{
	return do_open(AT_FDCWD, name, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

int creat64(const char *name, mode_t mode)
{
	return creat(name, mode);
}

/* What open is called by where the compiler checks its arguments. */
int __open_2(const char *name, int flags);
int __open64_2(const char *name, int flags);
int __openat_2(int at, const char *name, int flags);
int __openat64_2(int at, const char *name, int flags);

int __open_2(const char *name, int flags)
{
	return do_open(AT_FDCWD, name, flags, 0);
}

int __open64_2(const char *name, int flags)
{
	return do_open(AT_FDCWD, name, flags, 0);
}

int __openat_2(int at, const char *name, int flags)
{
	return do_open(at, name, flags, 0);
}

int __openat64_2(int at, const char *name, int flags)
{
	return do_open(at, name, flags, 0);
}

int mkostemps(char *name, int suffix, int flags)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	char *x = name + strlen(name) - suffix - 6;
	int fd;

	do {
		unsigned char bytes[6];

		if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
			return -1;
		for (int i = 0; i < 6; i++)
			x[i] = letters[bytes[i] % 32];
		fd = do_open(AT_FDCWD, name, O_RDWR | O_CREAT | O_EXCL | flags,
			0600);
	} while (fd < 0 && errno == EEXIST);
	return fd;
}

int mkostemp(char *name, int flags)
{
	return mkostemps(name, 0, flags);
}

int mkstemp(char *name)
{
	return mkostemps(name, 0, 0);
}

int mkstemp64(char *name)
{
	return mkostemps(name, 0, 0);
}

/* The bytes of iov that a write may take, as fewer pieces. */
static int halve(const struct iovec *iov, int n, struct iovec *out)
{
	size_t left = 0;
	int m = 0;

	for (int i = 0; i < n; i++)
		left += iov[i].iov_len;
	left /= 2;
	for (int i = 0; i < n && left; i++) {
		out[m] = iov[i];
		if (out[m].iov_len > left)
			out[m].iov_len = left;
		left -= out[m++].iov_len;
	}
	return m;
}

/* At offset at, or where the file is for -1. */
static ssize_t raw_write(int fd, const struct iovec *iov, int n, off_t at)
{
	return at < 0 ? syscall(SYS_writev, fd, iov, (long)n)
		      : syscall(SYS_pwritev, fd, iov, (long)n, (long)at, 0L);
}

static ssize_t do_write(int fd, const struct iovec *iov, int n, off_t at)
{
	struct iovec less[n > 0 ? n : 1];
	char path[PATH_MAX], self[64];
	enum crash_verdict v;
	ssize_t done = -1;

	if (!locate_fd(fd, path))
		return raw_write(fd, iov, n, at);
	v = crash_enter(CRASH_WRITE, path);
	if (v != CRASH_FAIL) {
		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		undo_content(self);
		if (v != CRASH_PASS) {
			n = halve(iov, n, less);
			iov = less;
		}
		done = raw_write(fd, iov, n, at);
	}
	if (v == CRASH_HALF)
		crash_die();
	if (v == CRASH_PART && !done) {
		done = -1;
		errno = ENOSPC;
	}
	crash_leave();
	return done;
}

ssize_t write(int fd, const void *data, size_t n)
{
	struct iovec one = {(void *)(uintptr_t)data, n};

	return do_write(fd, &one, 1, -1);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	struct iovec one = {(void *)(uintptr_t)data, n};

	return do_write(fd, &one, 1, at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off_t at)
{
	return pwrite(fd, data, n, at);
}

ssize_t writev(int fd, const struct iovec *iov, int n)
{
	return do_write(fd, iov, n, -1);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	return do_write(fd, iov, n, at);
}

int ftruncate(int fd, off_t size)
{
	char path[PATH_MAX], self[64];
	int rc = -1;

	if (!locate_fd(fd, path))
		return (int)syscall(SYS_ftruncate, fd, size);
	if (crash_enter(CRASH_TRUNCATE, path) != CRASH_FAIL) {
		snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
		undo_content(self);
		rc = (int)syscall(SYS_ftruncate, fd, size);
	}
	crash_leave();
	return rc;
}

int ftruncate64(int fd, off_t size)
{
	return ftruncate(fd, size);
}

/* Two names change, each in its own folder. */
static int watched_rename(int at1, const char *from, const char *path1, int at2,
	const char *to, const char *path2, unsigned flags)
{
	char *gone = undo_keep(path1), *replaced = undo_keep(path2);
	int rc = (int)syscall(
		SYS_renameat2, at1, from, at2, to, (unsigned long)flags);

	if (rc) {
		undo_forget(gone);
		undo_forget(replaced);
		return rc;
	}
	if (replaced)
		undo_name(UNDO_GONE, path2, replaced);
	undo_name(UNDO_MADE, path2, NULL);
	if (gone)
		undo_name(UNDO_GONE, path1, gone);
	return 0;
}

int renameat2(
	int at1, const char *from, int at2, const char *to, unsigned flags)
{
	char path1[PATH_MAX], path2[PATH_MAX];
	int from_here = locate(at1, from, path1);
	enum crash_verdict v;
	int rc = -1;

	if (!locate(at2, to, path2) && !from_here)
		return (int)syscall(SYS_renameat2, at1, from, at2, to,
			(unsigned long)flags);
	v = crash_enter(CRASH_RENAME, path2);
	if (v != CRASH_FAIL)
		rc = watched_rename(at1, from, path1, at2, to, path2, flags);
	if (v == CRASH_LIE && !rc) {
		rc = -1;
		errno = ENOENT;
	}
	crash_leave();
	return rc;
}

int renameat(int at1, const char *from, int at2, const char *to)
{
	return renameat2(at1, from, at2, to, 0);
}

int rename(const char *from, const char *to)
{
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int at1, const char *from, int at2, const char *to, int flags)
{
	char path[PATH_MAX];
	int rc = -1, watched = locate(at2, to, path);

	if (!watched || crash_enter(CRASH_LINK, path) != CRASH_FAIL)
		rc = (int)syscall(SYS_linkat, at1, from, at2, to, (long)flags);
	if (watched) {
		if (!rc)
			undo_name(UNDO_MADE, path, NULL);
		crash_leave();
	}
	return rc;
}

int link(const char *from, const char *to)
{
	return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int symlinkat(const char *target, int at, const char *to)
{
	char path[PATH_MAX];
	int rc = -1, watched = locate(at, to, path);

	if (!watched || crash_enter(CRASH_LINK, path) != CRASH_FAIL)
		rc = (int)syscall(SYS_symlinkat, target, at, to);
	if (watched) {
		if (!rc)
			undo_name(UNDO_MADE, path, NULL);
		crash_leave();
	}
	return rc;
}

int symlink(const char *target, const char *to)
{
	return symlinkat(target, AT_FDCWD, to);
}

int unlinkat(int at, const char *name, int flags)
{
	int folder = flags & AT_REMOVEDIR, rc = -1;
	char path[PATH_MAX], *kept = NULL;

	if (!locate(at, name, path))
		return (int)syscall(SYS_unlinkat, at, name, (long)flags);
	if (crash_enter(folder ? CRASH_RMDIR : CRASH_UNLINK, path) !=
		CRASH_FAIL) {
		if (!folder)
			kept = undo_keep(path);
		rc = (int)syscall(SYS_unlinkat, at, name, (long)flags);
		if (rc)
			undo_forget(kept);
		else
			undo_name(folder ? UNDO_GONE_FOLDER : UNDO_GONE, path,
				kept);
	}
	crash_leave();
	return rc;
}

int unlink(const char *name)
{
	return unlinkat(AT_FDCWD, name, 0);
}

int rmdir(const char *name)
{
	return unlinkat(AT_FDCWD, name, AT_REMOVEDIR);
}

int remove(const char *name)
{
	struct stat st;

	return unlinkat(AT_FDCWD, name,
		!lstat(name, &st) && S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

int mkdirat(int at, const char *name, mode_t mode)
{
	char path[PATH_MAX];
	int rc = -1, watched = locate(at, name, path) && !is_there(path);

	if (!watched || crash_enter(CRASH_MKDIR, path) != CRASH_FAIL)
		rc = (int)syscall(SYS_mkdirat, at, name, (long)mode);
	if (watched) {
		if (!rc)
			undo_name(UNDO_MADE_FOLDER, path, NULL);
		crash_leave();
	}
	return rc;
}

int mkdir(const char *name, mode_t mode)
{
	return mkdirat(AT_FDCWD, name, mode);
}

int fsync(int fd)
{
	enum crash_verdict v;
	char path[PATH_MAX];
	struct stat st;

	if (!locate_fd(fd, path))
		return (int)syscall(SYS_fsync, fd);
	v = crash_enter(CRASH_SYNC, path);
	if (v == CRASH_PASS) {
		undo_synced_file(fd);
		if (!fstat(fd, &st) && S_ISDIR(st.st_mode))
			undo_synced_folder(path);
	}
	crash_leave();
	return v == CRASH_FAIL ? -1 : 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}
