#include "link/spool_file.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { NAMES_MAX = 1 << 20 }; /* in one folder */

/* The code for a file that could not be opened. */
static int missing_or(int code)
{
	switch (errno) {
	case ENOENT:
	case ESTALE: /* of NFS: it was replaced or removed meanwhile */
		return DL_NOINPUT;
	case ELOOP:
	case ENOTDIR:
		return DL_DATA;
	default:
		return code;
	}
}

int dl_spool_open(const char *path, int *fd, struct dl_err *e)
{
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *fd < 0 ? dl_fail_sys(e, missing_or(DL_IOERR), "%s", path) : 0;
}

/* The folder that holds path's last part, which *name gets. */
static int open_parent(int spool, const char *path, int *fd, const char **name,
	struct dl_err *e)
{
	const char *slash;

	*name = path;
	*fd = fcntl(spool, F_DUPFD_CLOEXEC, 0);
	while (*fd >= 0 && (slash = strchr(*name, '/'))) {
		char *part = dl_strndup(*name, (size_t)(slash - *name));
		int next = openat(*fd, part,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int why = errno;

		free(part);
		close(*fd);
		errno = why;
		*fd = next;
		*name = slash + 1;
	}
	return *fd < 0 ? dl_fail_sys(e, missing_or(DL_IOERR), "%s", path) : 0;
}

int dl_spool_open_folder(int spool, const char *path, int *fd, struct dl_err *e)
{
	const char *name;
	int parent, code = open_parent(spool, path, &parent, &name, e);

	*fd = -1;
	if (code)
		return code;
	*fd = openat(
		parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		code = dl_fail_sys(e, missing_or(DL_IOERR), "%s", path);
	close(parent);
	return code;
}

static int sync_folder(int folder)
{
	/* Some file systems cannot sync a folder and say EINVAL. */
	return fsync(folder) && errno != EINVAL ? -1 : 0;
}

int dl_spool_make_folder(int spool, const char *path, struct dl_err *e)
{
	const char *name;
	int fd, code = open_parent(spool, path, &fd, &name, e);

	if (code)
		return code;
	if (!mkdirat(fd, name, 0777))
		code = sync_folder(fd) ? dl_fail_sys(e, DL_IOERR, "%s", path)
				       : 0;
	else if (errno != EEXIST)
		code = dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	close(fd);
	if (!code)
		code = dl_spool_open_folder(spool, path, &fd, e);
	if (!code)
		close(fd);
	return code;
}

/* O_NONBLOCK, so that a fifo is refused instead of waited for. */
static int open_at(int folder, const char *name, const char *path, int *fd,
	struct stat *st, struct dl_err *e)
{
	struct stat own;
	int code = 0;

	if (!st)
		st = &own;
	*fd = openat(folder, name,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (*fd < 0)
		return dl_fail_sys(e, missing_or(DL_IOERR), "%s", path);
	if (fstat(*fd, st))
		code = dl_fail_sys(e, missing_or(DL_IOERR), "%s", path);
	else if (!S_ISREG(st->st_mode))
		code = dl_fail(e, DL_DATA, "%s: not a regular file", path);
	if (code) {
		close(*fd);
		*fd = -1;
	}
	return code;
}

int dl_spool_open_file(
	int spool, const char *path, int *fd, struct stat *st, struct dl_err *e)
{
	const char *name;
	int folder, code = open_parent(spool, path, &folder, &name, e);

	*fd = -1;
	if (code)
		return code;
	code = open_at(folder, name, path, fd, st, e);
	close(folder);
	return code;
}

/* Is it st's file that has the name now? */
static int has_name(int folder, const char *name, const struct stat *st)
{
	struct stat now;

	return !fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) &&
	       now.st_dev == st->st_dev && now.st_ino == st->st_ino;
}

static int set_lock(int fd, short type, int how)
{
	struct flock f = {.l_type = type, .l_whence = SEEK_SET};
	int rc;

	do
		rc = fcntl(fd, how, &f);
	while (rc && errno == EINTR);
	return rc;
}

/* Where there are no locks it is age alone that keeps old files. */
static int has_no_locks(void)
{
	return errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
}

int dl_spool_open_locked(
	int spool, const char *path, int *fd, struct stat *st, struct dl_err *e)
{
	const char *name;
	struct stat own;
	int folder, code = open_parent(spool, path, &folder, &name, e);

	*fd = -1;
	if (!st)
		st = &own;
	if (code)
		return code;
	code = open_at(folder, name, path, fd, st, e);
	if (!code && set_lock(*fd, F_RDLCK, F_SETLK) && !has_no_locks())
		code = errno == EACCES || errno == EAGAIN
			       ? dl_fail(e, DL_NOINPUT, "%s: is being removed",
					 path)
			       : dl_fail_sys(e, DL_IOERR, "%s", path);
	if (!code && !has_name(folder, name, st))
		code = dl_fail(e, DL_NOINPUT, "%s: was removed", path);
	if (code && *fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	close(folder);
	return code;
}

int dl_spool_collect(
	int spool, const char *path, int *removed, struct dl_err *e)
{
	const char *name;
	int fd, folder, code = open_parent(spool, path, &folder, &name, e);

	*removed = code == DL_NOINPUT;
	if (code)
		return *removed ? 0 : code;
	fd = openat(folder, name,
		O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		code = dl_fail_sys(e, DL_IOERR, "%s", path);
	else if (fd < 0)
		*removed = 1;
	else if (!set_lock(fd, F_WRLCK, F_SETLK) || has_no_locks())
		*removed = !unlinkat(folder, name, 0) || errno == ENOENT;
	if (fd >= 0)
		close(fd);
	close(folder);
	return code;
}

int dl_spool_read(int spool, const char *path, size_t limit, struct dl_buf *out,
	struct dl_err *e)
{
	struct stat st;
	ssize_t got = -1;
	int fd, code = dl_spool_open_file(spool, path, &fd, &st, e);

	dl_buf_clear(out);
	if (code)
		return code;
	if ((uintmax_t)st.st_size > limit) {
		code = dl_fail(
			e, DL_DATA, "%s: larger than %zu bytes", path, limit);
	} else {
		dl_buf_reserve(out, (size_t)st.st_size + 1);
		got = dl_read_full(fd, out->data, (size_t)st.st_size + 1);
		if (got < 0)
			code = dl_fail_sys(e, missing_or(DL_IOERR), "%s", path);
		else if (got > st.st_size)
			code = dl_fail(e, DL_DATA, "%s: grows", path);
	}
	if (!code)
		out->len = (size_t)got;
	close(fd);
	return code;
}

int dl_spool_hash(
	int fd, uint64_t size, char hash[DL_HASH_HEX], struct dl_err *e)
{
	char piece[65536];
	struct dl_hash h;
	uint64_t at = 0;
	ssize_t n;

	dl_hash_init(&h);
	while ((n = dl_pread_full(fd, piece, sizeof piece, at)) > 0) {
		dl_hash_add(&h, piece, (size_t)n);
		at += (uint64_t)n;
		if (at > size)
			break;
	}
	dl_hash_hex(&h, hash);
	if (n < 0)
		return dl_fail_sys(e, missing_or(DL_IOERR), "cannot read");
	if (at != size)
		return dl_fail(e, DL_DATA, "has another size");
	return 0;
}

static int write_parts(int fd, const struct iovec *part, size_t parts)
{
	for (size_t i = 0; i < parts; i++)
		if (dl_write_full(fd, part[i].iov_base, part[i].iov_len))
			return -1;
	return fsync(fd);
}

/*
 * fd is open as tmp/TEMP. NFS may send a rename twice and hear of the second
 * that there is no such file; then the name tells whether the first worked.
 */
static int give_name(
	int fd, int tmp, const char *temp, int folder, const char *name)
{
	struct stat st;

	if (!renameat(tmp, temp, folder, name))
		return 0;
	if (errno != ENOENT)
		return -1;
	if (!fstat(fd, &st) && has_name(folder, name, &st))
		return 0;
	errno = ENOENT;
	return -1;
}

/* The folders are open; temp is a name in tmp. */
static int put(int tmp, const char *temp, int folder, const char *name,
	const struct iovec *part, size_t parts, struct dl_err *e)
{
	int fd, code = 0;

	unlinkat(tmp, temp, 0);
	fd = openat(tmp, temp,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "tmp/%s", temp);
	if (write_parts(fd, part, parts))
		code = dl_fail_sys(e, DL_IOERR, "tmp/%s", temp);
	else if (give_name(fd, tmp, temp, folder, name))
		code = dl_fail_sys(e, DL_IOERR, "%s", name);
	/* NFS may say only now that there was no room. */
	if (close(fd) && !code && errno != EINTR)
		code = dl_fail_sys(e, DL_IOERR, "%s", name);
	if (code)
		unlinkat(tmp, temp, 0);
	else if (sync_folder(folder))
		code = dl_fail_sys(e, DL_IOERR, "%s", name);
	return code;
}

int dl_spool_put(int spool, const char *temp, const char *path,
	const struct iovec *part, size_t parts, struct dl_err *e)
{
	const char *name;
	int tmp, folder, code = dl_spool_open_folder(spool, "tmp", &tmp, e);

	if (!code)
		code = open_parent(spool, path, &folder, &name, e);
	if (code)
		goto out;
	code = put(tmp, temp, folder, name, part, parts, e);
	close(folder);
out:
	if (tmp >= 0)
		close(tmp);
	/* Whoever is told 66 would look for an input. */
	return code == DL_NOINPUT || code == DL_DATA
		       ? (e ? (e->code = DL_CANTCREAT) : DL_CANTCREAT)
		       : code;
}

int dl_spool_move(
	int spool, const char *from, const char *to, struct dl_err *e)
{
	const char *name, *new_name;
	int folder, to_folder, code;

	code = open_parent(spool, from, &folder, &name, e);
	if (code)
		return code;
	code = open_parent(spool, to, &to_folder, &new_name, e);
	if (!code && renameat(folder, name, to_folder, new_name))
		code = dl_fail_sys(e, missing_or(DL_IOERR), "%s", from);
	close(folder);
	if (to_folder >= 0)
		close(to_folder);
	return code;
}

int dl_spool_remove(int spool, const char *path, struct dl_err *e)
{
	const char *name;
	int folder, code = open_parent(spool, path, &folder, &name, e);

	if (code)
		return code == DL_NOINPUT ? 0 : code;
	if (unlinkat(folder, name, 0) && errno != ENOENT && errno != EISDIR)
		code = dl_fail_sys(e, DL_IOERR, "%s", path);
	close(folder);
	return code;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *dir, struct dl_spool_names *out)
{
	struct dirent *d;
	size_t cap = 0;

	for (errno = 0; (d = readdir(dir)); errno = 0) {
		if (d->d_name[0] == '.')
			continue;
		if (out->n == NAMES_MAX) {
			errno = EOVERFLOW;
			return -1;
		}
		if (out->n == cap) {
			cap = cap ? 2 * cap : 64;
			out->name =
				dl_resize(out->name, cap, sizeof *out->name);
		}
		out->name[out->n++] = dl_strdup(d->d_name);
	}
	return errno ? -1 : 0;
}

int dl_spool_list(int spool, const char *path, struct dl_spool_names *out,
	struct dl_err *e)
{
	int fd, code = dl_spool_open_folder(spool, path, &fd, e);
	DIR *dir;

	*out = (struct dl_spool_names){0};
	if (code)
		return code;
	dir = fdopendir(fd);
	if (!dir) {
		code = dl_fail_sys(e, DL_OSERR, "%s", path);
		close(fd);
		return code;
	}
	if (read_names(dir, out)) {
		code = dl_fail_sys(e, missing_or(DL_IOERR), "%s", path);
		dl_spool_names_release(out);
	} else if (out->n) {
		qsort(out->name, out->n, sizeof *out->name, compare);
	}
	closedir(dir);
	return code;
}

void dl_spool_names_release(struct dl_spool_names *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->name[i]);
	free(v->name);
	*v = (struct dl_spool_names){0};
}
