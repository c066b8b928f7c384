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
	size_t size;	   /* bytes of data */
	atomic_int failed; /* what has not begun is left */
	struct file {
		const float *data; /* NULL: there is none */
		char *hash;
		struct dl_output *out; /* NULL: commit it */
		struct dl_buf head;
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

static void put_head(struct dl_buf *out, const struct dl_store_label *label,
	const struct dl_layout *l, int kind)
{
	static const char *const names[] = {"params", "momentum", "error"};
	struct dl_writer w = DL_WRITER_INIT;
	char version[48];

	snprintf(version, sizeof version, "%" PRIu64 ".%" PRIu64,
		label->version.epoch, label->version.number);
	dl_writer_meta(&w, "dl.format", "1");
	dl_writer_meta(&w, "dl.kind", names[kind]);
	dl_writer_meta(&w, "dl.run", label->run);
	dl_writer_meta(&w, "dl.layout", l->hash);
	dl_writer_meta_u64(&w, "dl.fragment", label->p);
	dl_writer_meta_u64(&w, "dl.step", label->step);
	dl_writer_meta(&w, "dl.version", version);
	dl_layout_record(l, label->p, &w);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
}

static void add_file(struct files *k, const struct dl_layout *l, int kind,
	const struct dl_store_content *content, char *hash)
{
	struct file *file = &k->file[kind];

	*hash = '\0';
	if (!content->data[kind])
		return;
	file->data = content->data[kind];
	file->hash = hash;
	file->out = content->out[kind];
	put_head(&file->head, k->label, l, kind);
}

static void hash_file(const struct files *k, int kind)
{
	const struct file *file = &k->file[kind];
	struct dl_hash h;

	dl_hash_init(&h);
	dl_hash_add(&h, file->head.data, file->head.len);
	dl_hash_add(&h, file->data, k->size);
	dl_hash_hex(&h, file->hash);
}

static void write_file(struct files *k, int kind)
{
	struct file *file = &k->file[kind];
	struct dl_output own, *out = file->out ? file->out : &own;
	char *path = dl_store_file_path(
		k->folder, kind, k->label->p, k->label->version);
	int rc = kind == DL_STORE_ERROR ? need_errors(k->folder, &file->e) : 0;

	if (!rc)
		rc = dl_store_file_write(
			out, path, &file->head, file->data, k->size, &file->e);
	if (!rc && !file->out)
		rc = dl_output_commit(out, &file->e);
	if (rc)
		atomic_store(&k->failed, 1);
	free(path);
}

/* The files, which a disk may be waited for, then the hashes. */
static void take_part(void *ctx, size_t i)
{
	struct files *k = ctx;
	int kind = (int)(i % DL_STORE_KINDS);

	if (!k->file[kind].data || atomic_load(&k->failed))
		return;
	if (i < DL_STORE_KINDS)
		write_file(k, kind);
	else
		hash_file(k, kind);
}

int dl_store_write_files(struct dl_pool *pool, const char *folder,
	const struct dl_store_label *label, const struct dl_layout *l,
	const struct dl_store_content *content, struct dl_head_files *files,
	struct dl_err *e)
{
	struct files k = {.folder = folder,
		.label = label,
		.size = l->fragment[label->p].elements * sizeof(float)};
	int rc = 0;

	files->made = label->version;
	files->error = content->data[DL_STORE_ERROR] != NULL;
	for (int kind = 0; kind < DL_STORE_KINDS; kind++)
		add_file(&k, l, kind, content, files->hash[kind]);
	dl_pool_run(pool, (content->unhashed ? 1 : 2) * DL_STORE_KINDS,
		take_part, &k);
	for (int kind = 0; kind < DL_STORE_KINDS; kind++) {
		struct file *file = &k.file[kind];

		dl_buf_free(&file->head);
		if (rc || !file->e.code)
			continue;
		rc = file->e.code;
		if (e)
			*e = file->e;
	}
	return rc;
}
