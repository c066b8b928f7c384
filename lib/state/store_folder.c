#include "state/store_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
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

/* The files of a fragment that are being written. */
struct files {
	const char *folder;
	const struct dl_store_label *label;
	const struct dl_layout *layout;
	atomic_int failed; /* what has not begun is left */
	struct file {
		const float *data; /* NULL: there is none */
		char *hash;
		struct dl_err e;
	} file[DL_STORE_KINDS];
};

/* The folder of errors is made with the first, so that older stores and runs
 * without one do as they are. */
static int need_errors(const char *folder, struct dl_err *e)
{
	char *path = dl_store_path(folder, dl_store_kinds[DL_STORE_ERROR]);
	int rc = access(path, F_OK) ? dl_make_folder(path, e) : 0;

	free(path);
	return rc;
}

static void describe(
	struct dl_writer *w, const struct files *k, const char *kind)
{
	const struct dl_store_label *label = k->label;
	char version[48];

	snprintf(version, sizeof version, "%" PRIu64 ".%" PRIu64,
		label->version.epoch, label->version.number);
	dl_writer_meta(w, "dl.format", "1");
	dl_writer_meta(w, "dl.kind", kind);
	dl_writer_meta(w, "dl.run", label->run);
	dl_writer_meta(w, "dl.layout", k->layout->hash);
	dl_writer_meta_u64(w, "dl.fragment", label->p);
	dl_writer_meta_u64(w, "dl.step", label->step);
	dl_writer_meta(w, "dl.version", version);
}

static void write_file(void *ctx, size_t kind)
{
	static const char *const names[] = {"params", "momentum", "error"};
	struct files *k = ctx;
	struct file *file = &k->file[kind];
	uint32_t p = k->label->p;
	struct dl_writer w = DL_WRITER_INIT;
	char *path;
	int rc = 0;

	if (!file->data || atomic_load(&k->failed))
		return;
	path = dl_store_file_path(
		k->folder, (int)kind, p, k->label->version);
	describe(&w, k, names[kind]);
	if (kind == DL_STORE_ERROR)
		rc = need_errors(k->folder, &file->e);
	if (!rc)
		rc = dl_store_file_write(path, &w, k->layout, p, file->data,
			file->hash, &file->e);
	else
		dl_writer_release(&w);
	if (rc)
		atomic_store(&k->failed, 1);
	free(path);
}

int dl_store_write_files(struct dl_pool *pool, const char *folder,
	const struct dl_store_label *label, const struct dl_layout *l,
	const float *const data[DL_STORE_KINDS], struct dl_head_files *files,
	struct dl_err *e)
{
	char *const hash[] = {files->global, files->momentum, files->error};
	struct files k = {.folder = folder, .label = label, .layout = l};

	for (int kind = 0; kind < DL_STORE_KINDS; kind++)
		k.file[kind] = (struct file){
			.data = data[kind], .hash = hash[kind]};
	*files->error = '\0';
	files->made = label->version;
	dl_pool_run(pool, DL_STORE_KINDS, write_file, &k);
	for (int kind = 0; kind < DL_STORE_KINDS; kind++)
		if (k.file[kind].e.code) {
			*e = k.file[kind].e;
			return e->code;
		}
	return 0;
}
