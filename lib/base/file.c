#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

ssize_t dl_read_full(int fd, void *buf, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)buf + got, n - got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (!r)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

ssize_t dl_pread_full(int fd, void *buf, size_t n, uint64_t offset)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = pread(
			fd, (char *)buf + got, n - got, (off_t)(offset + got));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (!r)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int dl_pwrite_full(int fd, const void *buf, size_t n, uint64_t offset)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = pwrite(fd, (const char *)buf + done, n - done,
			(off_t)(offset + done));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		done += (size_t)r;
	}
	return 0;
}

int dl_write_full(int fd, const void *buf, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)buf + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		done += (size_t)r;
	}
	return 0;
}

int dl_open_read(const char *path, int *fd, struct dl_err *e)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*fd >= 0)
		return 0;
	return dl_fail_sys(e,
		errno == ENOENT || errno == ENOTDIR ? DL_NOINPUT : DL_IOERR,
		"%s", path);
}

int dl_fsync_folder(const char *folder, struct dl_err *e)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (fd < 0)
		return dl_fail_sys(e, DL_IOERR, "%s", folder);
	rc = fsync(fd);
	/* Some file systems cannot sync a folder and say EINVAL. */
	if (rc && errno != EINVAL)
		rc = dl_fail_sys(e, DL_IOERR, "%s", folder);
	else
		rc = 0;
	close(fd);
	return rc;
}

int dl_fsync_parent(const char *path, struct dl_err *e)
{
	size_t n = strlen(path);
	char *folder;
	int code;

	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	while (n > 1 && path[n - 1] == '/')
		n--;
	folder = n ? dl_strndup(path, n) : dl_strdup(".");
	code = dl_fsync_folder(folder, e);
	free(folder);
	return code;
}

int dl_make_folder(const char *path, struct dl_err *e)
{
	struct stat st;

	if (!mkdir(path, 0777))
		return dl_fsync_parent(path, e);
	if (errno == EEXIST && !stat(path, &st) && S_ISDIR(st.st_mode)) {
		/* Whoever made it may have died before its name was synced; who
		 * only may use it cannot do that for them. */
		dl_fsync_parent(path, NULL);
		return 0;
	}
	return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
}

/*
 * NFS may send a request twice, and is then told of the second that there is no
 * such file. Where the final name is the file that was to get it, the first has
 * worked.
 */
int dl_rename(const char *from, const char *to)
{
	struct stat before, after;
	int known = !lstat(from, &before);

	if (!rename(from, to))
		return 0;
	if (errno != ENOENT)
		return -1;
	if (known && !lstat(to, &after) && after.st_dev == before.st_dev &&
		after.st_ino == before.st_ino)
		return 0;
	errno = ENOENT;
	return -1;
}
