/* Reading checkpoints. */
#include "state/checkpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "state/checkpoint_file.h"
#include "state/store_folder.h"

enum { PART = 1 << 20, MILLISECOND = DL_SECOND / 1000 };

/* What is done with a file of a fragment. */
typedef int file_function(
	struct dl_checkpoint_file *f, void *ctx, struct dl_err *e);

/* Does it with all of them, until it fails. */
static int each(struct dl_checkpoint_file *f, file_function *one, void *ctx,
	struct dl_err *e)
{
	int rc;

	while (!(rc = dl_checkpoint_next(f))) {
		rc = one(f, ctx, e);
		if (!rc)
			rc = dl_checkpoint_whole(f);
		if (rc)
			break;
	}
	return rc == DL_NO ? 0 : rc;
}

/* A tar's first block: the name of its first entry, and "ustar". */
static int begins_so(int fd)
{
	static const char name[] = "manifest.json";
	enum { MAGIC = 257, BLOCK = 512 };
	char block[BLOCK];
	struct dl_input in;
	size_t got = 0;
	ssize_t n = 1;

	dl_input_init(&in, fd);
	for (; got < BLOCK && n > 0; got += n > 0 ? (size_t)n : 0)
		n = dl_input_read(&in, block + got, BLOCK - got, NULL);
	dl_input_release(&in);
	return got == BLOCK && !memcmp(block, name, sizeof name) &&
	       !memcmp(block + MAGIC, "ustar", strlen("ustar"));
}

int dl_checkpoint_is(const char *path)
{
	struct stat st;
	int fd, is;

	if (!strcmp(path, "-")) {
		/* Only what can be read once more may be looked at. */
		if (fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode) ||
			lseek(STDIN_FILENO, 0, SEEK_CUR))
			return 0;
		is = begins_so(STDIN_FILENO);
		lseek(STDIN_FILENO, 0, SEEK_SET);
		return is;
	}
	if (stat(path, &st) || !S_ISREG(st.st_mode) ||
		dl_open_read(path, &fd, NULL))
		return 0;
	is = begins_so(fd);
	close(fd);
	return is;
}

int dl_checkpoint_peek(
	const char *path, struct dl_checkpoint_info *info, struct dl_err *e)
{
	struct dl_checkpoint_file f;
	int rc = dl_checkpoint_open(&f, path, e);

	if (!rc)
		dl_checkpoint_describe(&f, info);
	dl_checkpoint_close(&f);
	return rc;
}

int dl_checkpoint_saved(const char *path, struct dl_checkpoint_info *info,
	struct dl_sync_saved *saved, struct dl_err *e)
{
	struct dl_checkpoint_file f;
	int rc = dl_checkpoint_open(&f, path, e);

	if (!rc) {
		dl_checkpoint_describe(&f, info);
		dl_sync_saved_copy(&f.head.saved, saved);
	}
	dl_checkpoint_close(&f);
	return rc;
}

static int pass_over(struct dl_checkpoint_file *f, void *part, struct dl_err *e)
{
	int rc = 0;

	(void)e;
	while (!rc && f->left)
		rc = dl_checkpoint_data(
			f, part, f->left < PART ? (size_t)f->left : PART);
	return rc;
}

int dl_checkpoint_check(
	const char *path, struct dl_checkpoint_info *info, struct dl_err *e)
{
	struct dl_checkpoint_file f;
	void *part = dl_alloc(PART);
	int rc = dl_checkpoint_open(&f, path, e);

	if (!rc)
		rc = each(&f, pass_over, part, e);
	if (!rc)
		dl_checkpoint_describe(&f, info);
	dl_checkpoint_close(&f);
	free(part);
	return rc;
}

struct load {
	float **values;
	void *part;
};

static int load(struct dl_checkpoint_file *f, void *ctx, struct dl_err *e)
{
	const struct load *load = ctx;
	size_t bytes = (size_t)f->left;

	if (f->kind != DL_STORE_GLOBAL)
		return pass_over(f, load->part, e);
	load->values[f->p] = dl_big_alloc(bytes);
	return dl_checkpoint_data(f, load->values[f->p], bytes);
}

int dl_checkpoint_read(const char *path, struct dl_layout *l, float ***values,
	struct dl_err *e)
{
	struct dl_checkpoint_file f;
	struct load what = {.values = NULL};
	int rc = dl_checkpoint_open(&f, path, e);

	if (!rc) {
		what.values =
			dl_alloc_array(f.layout.fragments, sizeof *what.values);
		what.part = dl_alloc(PART);
		rc = each(&f, load, &what, e);
		free(what.part);
	}
	*values = what.values;
	*l = f.layout;
	f.layout = (struct dl_layout){.tensors = 0};
	dl_checkpoint_close(&f);
	return rc;
}

struct unpack {
	const char *folder;
	void *part;
};

static int write_file(struct dl_checkpoint_file *f, const struct unpack *to,
	struct dl_output *o, struct dl_err *e)
{
	int rc = dl_output_write(o, f->record.data, f->record.len, e);

	while (!rc && f->left) {
		size_t n = f->left < PART ? (size_t)f->left : PART;

		rc = dl_checkpoint_data(f, to->part, n);
		if (!rc)
			rc = dl_output_write(o, to->part, n, e);
	}
	return rc;
}

static int unpack_file(
	struct dl_checkpoint_file *f, void *ctx, struct dl_err *e)
{
	const struct unpack *to = ctx;
	char *path = dl_store_path(to->folder, f->entry->name);
	struct dl_output o;
	int rc = dl_output_open(&o, path, e);

	free(path);
	if (rc)
		return rc;
	rc = write_file(f, to, &o, e);
	if (!rc)
		return dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

/* The folder of errors is not there before one needs it. */
static int make_errors(
	const struct dl_head *h, const char *folder, struct dl_err *e)
{
	char *path = dl_store_path(folder, dl_store_kinds[DL_STORE_ERROR]);
	int rc = 0, any = 0;

	for (uint32_t p = 0; p < h->saved.fragments; p++)
		any |= h->files[p].error;
	if (any)
		rc = dl_make_folder(path, e);
	free(path);
	return rc;
}

/* Whole milliseconds that have passed; a clock that was set back has none. */
static void raise_epoch(struct dl_head *h, int64_t made, int64_t now)
{
	if (now > made)
		h->saved.epoch += (uint64_t)((now - made) / MILLISECOND);
}

static int write_all(struct dl_checkpoint_file *f, const struct unpack *to,
	int64_t now, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int rc = dl_store_write_layout(to->folder, &f->layout_text, e);

	if (!rc)
		rc = make_errors(&f->head, to->folder, e);
	if (!rc)
		rc = each(f, unpack_file, (void *)to, e);
	if (!rc) {
		raise_epoch(&f->head, f->manifest.made, now);
		dl_head_write(&text, &f->head);
		rc = dl_store_write_head(to->folder, &text, e);
	}
	dl_buf_free(&text);
	return rc;
}

static int unpack(
	const char *path, const char *folder, int64_t now, struct dl_err *e)
{
	struct unpack to = {folder, dl_alloc(PART)};
	struct dl_checkpoint_file f;
	int lock, rc = dl_checkpoint_open(&f, path, e);

	if (!rc)
		rc = dl_store_begin(folder, &lock, e);
	if (!rc) {
		rc = write_all(&f, &to, now, e);
		close(lock);
	}
	dl_checkpoint_close(&f);
	free(to.part);
	return rc;
}

int dl_checkpoint_unpack(
	const char *path, const char *folder, int64_t now, struct dl_err *e)
{
	struct dl_checkpoint_info info;
	int rc = dl_checkpoint_check(path, &info, e);

	return rc ? rc : unpack(path, folder, now, e);
}
