#include "state/store_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "state/store_file.h"

const char *const dl_store_kinds[] = {"global", "momentum", "error"};

char *dl_store_path(const char *folder, const char *name)
{
	return dl_sprintf("%s/%s", folder, name);
}

char *dl_store_file_name(uint32_t p, struct dl_version made)
{
	return dl_sprintf(
		"%" PRIu32 ".%" PRIu64 ".%" PRIu64, p, made.epoch, made.number);
}

char *dl_store_file_path(
	const char *folder, int kind, uint32_t p, struct dl_version made)
{
	char *name = dl_store_file_name(p, made);
	char *path = dl_sprintf("%s/%s/%s", folder, dl_store_kinds[kind], name);

	free(name);
	return path;
}

int dl_store_lock(const char *folder, int *fd, struct dl_err *e)
{
	struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char *path = dl_store_path(folder, "lock");
	int rc = 0;

	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (*fd < 0) {
		rc = dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	} else if (fcntl(*fd, F_SETLK, &f)) {
		if (errno != EACCES && errno != EAGAIN)
			rc = dl_fail_sys(e, DL_IOERR, "%s", path);
		else if (!fcntl(*fd, F_GETLK, &f) && f.l_type != F_UNLCK)
			rc = dl_fail(e, DL_TEMPFAIL,
				"%s: in use by process %ld", folder,
				(long)f.l_pid);
		else
			rc = dl_fail(e, DL_TEMPFAIL,
				"%s: in use by another process", folder);
		close(*fd);
		*fd = -1;
	}
	free(path);
	return rc;
}

static int make_folders(const char *folder, struct dl_err *e)
{
	int rc = dl_make_folder(folder, e);

	for (int k = 0; !rc && k < DL_STORE_ERROR; k++) {
		char *path = dl_store_path(folder, dl_store_kinds[k]);

		rc = dl_make_folder(path, e);
		free(path);
	}
	return rc;
}

static int refuse_second(const char *folder, struct dl_err *e)
{
	char *path = dl_store_path(folder, "HEAD");
	struct stat st;
	int rc = 0;

	if (!lstat(path, &st))
		rc = dl_fail(e, DL_CANTCREAT, "%s: there is a store already",
			folder);
	free(path);
	return rc;
}

int dl_store_begin(const char *folder, int *fd, struct dl_err *e)
{
	int rc = make_folders(folder, e);

	if (!rc)
		rc = dl_store_lock(folder, fd, e);
	if (rc)
		return rc;
	rc = refuse_second(folder, e);
	if (rc)
		close(*fd);
	return rc;
}

int dl_store_write_layout(
	const char *folder, const struct dl_buf *text, struct dl_err *e)
{
	char *path = dl_store_path(folder, "layout.tsv");
	int rc = dl_write_file(path, text->data, text->len, e);

	free(path);
	return rc;
}

int dl_store_write_head(
	const char *folder, const struct dl_buf *text, struct dl_err *e)
{
	char *path = dl_store_path(folder, "HEAD");
	int rc = dl_write_file(path, text->data, text->len, e);

	free(path);
	return rc;
}

/* One of the files of fragment p, at its version in h->saved. */
static int write_file(const char *folder, const struct dl_head *h,
	const struct dl_layout *l, int kind, uint32_t p, const float *data,
	char *hash, struct dl_err *e)
{
	static const char *const names[] = {"params", "momentum", "error"};
	const struct dl_sync_saved_fragment *f = h->saved.fragment + p;
	struct dl_writer w = DL_WRITER_INIT;
	char *path = dl_store_file_path(folder, kind, p, f->version);
	char version[48];
	int rc;

	snprintf(version, sizeof version, "%" PRIu64 ".%" PRIu64,
		f->version.epoch, f->version.number);
	dl_writer_meta(&w, "dl.format", "1");
	dl_writer_meta(&w, "dl.kind", names[kind]);
	dl_writer_meta(&w, "dl.run", h->run.name);
	dl_writer_meta(&w, "dl.layout", h->layout);
	dl_writer_meta_u64(&w, "dl.fragment", p);
	dl_writer_meta_u64(&w, "dl.step", f->step);
	dl_writer_meta(&w, "dl.version", version);
	rc = dl_store_file_write(path, &w, l, p, data, hash, e);
	free(path);
	return rc;
}

/* The folder of errors is made with the first, so that older stores and runs
 * without one do as they are. */
static int write_error(const char *folder, const struct dl_head *h,
	const struct dl_layout *l, uint32_t p, const float *data, char *hash,
	struct dl_err *e)
{
	char *path = dl_store_path(folder, dl_store_kinds[DL_STORE_ERROR]);
	int rc = access(path, F_OK) ? dl_make_folder(path, e) : 0;

	free(path);
	return rc ? rc
		  : write_file(folder, h, l, DL_STORE_ERROR, p, data, hash, e);
}

int dl_store_write_files(const char *folder, const struct dl_head *h,
	const struct dl_layout *l, uint32_t p, const float *values,
	const float *momentum, const float *error, struct dl_head_files *files,
	struct dl_err *e)
{
	int rc = write_file(
		folder, h, l, DL_STORE_GLOBAL, p, values, files->global, e);

	if (!rc)
		rc = write_file(folder, h, l, DL_STORE_MOMENTUM, p, momentum,
			files->momentum, e);
	*files->error = '\0';
	if (!rc && error)
		rc = write_error(folder, h, l, p, error, files->error, e);
	files->made = h->saved.fragment[p].version;
	return rc;
}
