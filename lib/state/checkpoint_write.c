/* Writing checkpoints. */
#include "state/checkpoint.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "state/archive.h"
#include "state/manifest.h"
#include "state/store_file.h"
#include "state/store_pin.h"

enum { BLOCK = 1 << 20, LAYOUT_LIMIT = 100000000, ZSTD_LEVEL = 1 };

/* libarchive makes the tar; what compresses it is ours, since its own zstd
 * leaves out the checksum that tells of damage. */
struct writer {
	const struct dl_pin *pin;
	struct dl_head head; /* the pin's, with all hashes */
	struct dl_buf text;  /* of it */
	struct dl_manifest manifest;
	struct dl_buf layout; /* the text */
	struct archive *archive;
	struct archive_entry *entry;
	struct dl_output *out;
	unsigned char *block;
	struct dl_err *e;
	int rc; /* 0 until something fails */
};

/* It hears of no failure, since it would leak: when one is known, the rest goes
 * nowhere. */
static la_ssize_t write_out(
	struct archive *a, void *ctx, const void *p, size_t n)
{
	struct writer *w = ctx;

	(void)a;
	if (!w->rc)
		w->rc = dl_output_write(w->out, p, n, w->e);
	return (la_ssize_t)n;
}

/* What libarchive said of it. */
static int tell(struct writer *w, int rc)
{
	if (rc == ARCHIVE_OK || w->rc)
		return w->rc;
	return dl_fail(w->e, DL_SOFTWARE, "tar: %s",
		dl_archive.error_string(w->archive));
}

static int put_data(struct writer *w, const void *p, size_t n)
{
	la_ssize_t put;

	if (atomic_load(&w->pin->abandoned))
		return w->rc = dl_fail(w->e, DL_TEMPFAIL, "abandoned");
	put = dl_archive.write_data(w->archive, p, n);

	return tell(w, put == (la_ssize_t)n ? ARCHIVE_OK : ARCHIVE_FATAL);
}

static int put_header(struct writer *w, const char *name, uint64_t bytes)
{
	struct archive_entry *entry = dl_archive.entry_clear(w->entry);

	dl_archive.entry_set_pathname(entry, name);
	dl_archive.entry_set_filetype(entry, AE_IFREG);
	dl_archive.entry_set_perm(entry, 0644);
	dl_archive.entry_set_size(entry, (la_int64_t)bytes);
	dl_archive.entry_set_mtime(
		entry, (time_t)(w->manifest.made / DL_SECOND), 0);
	return tell(w, dl_archive.write_header(w->archive, entry));
}

static int put_text(struct writer *w, const char *name, const struct dl_buf *b)
{
	int rc = put_header(w, name, b->len);

	return rc ? rc : put_data(w, b->data, b->len);
}

/* Copies the whole file, which must be what the manifest says. */
static int copy_file(struct writer *w, int fd, const struct dl_entry *entry)
{
	uint64_t left = entry->bytes;
	char hash[DL_HASH_HEX];
	struct dl_hash h;
	int rc = put_header(w, entry->name, left);

	dl_hash_init(&h);
	while (!rc && left) {
		size_t want = left < BLOCK ? (size_t)left : BLOCK;
		ssize_t n = dl_read_full(fd, w->block, want);

		if (n < 0)
			return dl_fail_sys(w->e, DL_IOERR, "cannot read");
		if ((size_t)n < want)
			return dl_fail(w->e, DL_DATA, "ends too early");
		dl_hash_add(&h, w->block, want);
		rc = put_data(w, w->block, want);
		left -= want;
	}
	dl_hash_hex(&h, hash);
	if (!rc && strcmp(hash, entry->hash) != 0)
		rc = dl_fail(w->e, DL_DATA, "not the bytes that HEAD names");
	return rc;
}

static int put_file(struct writer *w, const struct dl_entry *entry)
{
	char *path = dl_store_path(w->pin->folder, entry->name);
	int fd, rc = dl_open_read(path, &fd, w->e);

	if (!rc) {
		rc = copy_file(w, fd, entry);
		close(fd);
		/* Where it cannot be written is another place. */
		if (rc && !w->rc)
			dl_at(w->e, "%s", path);
	}
	free(path);
	return rc;
}

static void list_text(
	struct writer *w, const char *name, const struct dl_buf *text)
{
	struct dl_entry *entry = dl_manifest_add(&w->manifest, name);
	struct dl_hash h;

	entry->bytes = text->len;
	dl_hash_init(&h);
	dl_hash_add(&h, text->data, text->len);
	dl_hash_hex(&h, entry->hash);
}

static int list_file(struct writer *w, int kind, uint32_t p)
{
	const struct dl_head_files *f = &w->head.files[p];
	char *path = dl_store_file_path(w->pin->folder, kind, p, f->made);
	struct dl_entry *entry = dl_manifest_add(
		&w->manifest, path + strlen(w->pin->folder) + 1);
	struct stat st = {.st_size = 0};
	int rc = stat(path, &st) ? dl_fail_sys(w->e, DL_IOERR, "%s", path) : 0;

	entry->bytes = (uint64_t)st.st_size;
	memcpy(entry->hash, f->hash[kind], sizeof entry->hash);
	free(path);
	return rc;
}

static int list_fragment(struct writer *w, uint32_t p)
{
	int rc = 0;

	for (int kind = 0; !rc && kind < dl_head_kinds(&w->head.files[p]);
		kind++)
		rc = list_file(w, kind, p);
	return rc;
}

/* What HEAD does not know of the files of a fragment. */
static int hash_fragment(struct writer *w, uint32_t p)
{
	struct dl_head_files *f = &w->head.files[p];
	int rc = 0;

	for (int kind = 0; !rc && kind < dl_head_kinds(f); kind++) {
		char *path =
			dl_store_file_path(w->pin->folder, kind, p, f->made);

		if (!*f->hash[kind])
			rc = dl_store_file_hash(
				path, &w->pin->abandoned, f->hash[kind], w->e);
		free(path);
	}
	return rc;
}

static int write_head(struct writer *w)
{
	const struct dl_head *head = &w->pin->head;
	uint32_t fragments = head->saved.fragments;
	size_t size = fragments * sizeof *head->files;
	int rc = 0;

	w->head = *head;
	w->head.files = memcpy(dl_alloc(size), head->files, size);
	for (uint32_t p = 0; !rc && p < fragments; p++)
		rc = hash_fragment(w, p);
	dl_head_write(&w->text, &w->head);
	return rc;
}

static int read_layout(struct writer *w)
{
	char *path = dl_store_path(w->pin->folder, "layout.tsv");
	int rc = dl_read_file(path, LAYOUT_LIMIT, &w->layout, w->e);

	free(path);
	return rc;
}

static int list_all(struct writer *w)
{
	const struct dl_sync_saved *saved = dl_pin_saved(w->pin);
	int rc = read_layout(w);

	if (!rc)
		rc = write_head(w);
	strcpy(w->manifest.run, dl_pin_run(w->pin)->name);
	w->manifest.epoch = saved->epoch;
	w->manifest.clock = saved->clock;
	list_text(w, "HEAD", &w->text);
	list_text(w, "layout.tsv", &w->layout);
	for (uint32_t p = 0; !rc && p < saved->fragments; p++)
		rc = list_fragment(w, p);
	return rc;
}

static int put_manifest(struct writer *w)
{
	struct dl_buf text = DL_BUF_INIT;
	int rc;

	dl_manifest_write(&text, &w->manifest);
	rc = text.len > DL_MANIFEST_LIMIT
		     ? dl_fail(w->e, DL_DATA,
			       "%s: too many fragments for a checkpoint",
			       w->pin->folder)
		     : put_text(w, "manifest.json", &text);
	dl_buf_free(&text);
	return rc;
}

static int put_all(struct writer *w)
{
	int rc = put_manifest(w);

	if (!rc)
		rc = put_text(w, "HEAD", &w->text);
	if (!rc)
		rc = put_text(w, "layout.tsv", &w->layout);
	for (size_t i = 2; !rc && i < w->manifest.entries; i++)
		rc = put_file(w, &w->manifest.entry[i]);
	return rc ? rc : tell(w, dl_archive.write_close(w->archive));
}

static int begin_tar(struct writer *w)
{
	w->archive = dl_archive.write_new();
	w->entry = dl_archive.entry_new();
	if (!w->archive || !w->entry)
		return dl_fail(w->e, DL_OSERR, "out of memory");
	if (dl_archive.write_set_format_pax_restricted(w->archive) ||
		dl_archive.write_open(w->archive, w, NULL, write_out, NULL))
		return tell(w, ARCHIVE_FATAL);
	return 0;
}

/* Everything into out, which is then the caller's to commit. */
static int pack(const struct dl_pin *pin, int64_t made, struct dl_output *out,
	struct dl_err *e)
{
	struct writer w = {.pin = pin,
		.manifest.made = made < 0 ? 0 : made,
		.out = out,
		.block = dl_alloc(BLOCK),
		.e = e};
	int rc = dl_archive_load(e);

	dl_output_compress(out, ZSTD_LEVEL);
	if (!rc)
		rc = list_all(&w);
	if (!rc)
		rc = begin_tar(&w);
	if (!rc)
		rc = put_all(&w);
	w.rc = rc;
	if (w.archive)
		dl_archive.write_free(w.archive);
	if (w.entry)
		dl_archive.entry_free(w.entry);
	dl_manifest_release(&w.manifest);
	dl_buf_free(&w.layout);
	dl_buf_free(&w.text);
	free(w.head.files);
	free(w.block);
	return rc;
}

int dl_checkpoint_write(const struct dl_pin *pin, int64_t made,
	const char *path, struct dl_err *e)
{
	struct dl_output out;
	int rc = dl_output_open(&out, path, e);

	if (rc)
		return rc;
	rc = pack(pin, made, &out, e);
	if (!rc)
		return dl_output_commit(&out, e);
	dl_output_abort(&out);
	return rc;
}

int dl_checkpoint_pack(
	const struct dl_pin *pin, int64_t made, int fd, struct dl_err *e)
{
	struct dl_output out;
	int rc;

	dl_output_on(&out, fd);
	rc = pack(pin, made, &out, e);
	if (!rc)
		return dl_output_commit(&out, e);
	dl_output_abort(&out);
	return rc;
}

void dl_checkpoint_abandon(struct dl_pin *pin)
{
	atomic_store(&pin->abandoned, 1);
}
