#include "state/checkpoint_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "state/archive.h"
#include "state/store_folder.h"

enum {
	BLOCK = 1 << 17,
	LAYOUT_LIMIT = 100000000,
	AFTER_LIMIT = 1 << 20, /* of what pads a tar at its end */
	FIRST = 3	       /* entries before those of fragments: one more
				* than the manifest lists, itself */
};

static const struct dl_limits limits = DL_LIMITS_FILE;
static const char manifest[] = "manifest.json"; /* lists all but itself */

/* libarchive reads the tar; what decompresses it is ours, since only so is
 * known that nothing comes after its end. */
static la_ssize_t read_in(struct archive *a, void *ctx, const void **out)
{
	struct dl_checkpoint_file *f = ctx;
	ssize_t n = dl_input_read(&f->in, f->block, BLOCK, f->e);

	*out = f->block;
	f->input = n < 0 ? f->e->code : 0;
	if (n >= 0 && f->n > f->manifest.entries + 1) {
		f->after += (uint64_t)n;
		if (f->after > AFTER_LIMIT)
			f->input = dl_fail(
				f->e, DL_DATA, "bytes after its last entry");
	}
	if (!f->input)
		return n;
	dl_archive.set_error(a, EIO, "cannot read");
	return -1;
}

/* libarchive could not go on, at that place in the tar. */
static int broken(struct dl_checkpoint_file *f, const char *place)
{
	const char *why = dl_archive.error_string(f->archive);
	char text[160];

	if (f->input)
		return dl_at(f->e, "%s", place);
	why = why ? why : "damaged";
	return dl_fail(f->e, DL_DATA, "%s: %s", place,
		dl_scrub(text, sizeof text, why, strlen(why)));
}

static const char *scrubbed(char out[DL_ENTRY_NAME], const char *name)
{
	return dl_scrub(out, DL_ENTRY_NAME, name, strlen(name));
}

/* Another entry came than the manifest has there. */
static int refuse_other(struct dl_checkpoint_file *f, const char *name,
	const struct dl_entry *want)
{
	char text[DL_ENTRY_NAME], wanted[DL_ENTRY_NAME];
	size_t i = 0;

	scrubbed(text, name);
	while (i < f->manifest.entries &&
		strcmp(f->manifest.entry[i].name, name))
		i++;
	if (i == f->manifest.entries && strcmp(name, manifest))
		return dl_fail(f->e, DL_DATA, "%s: not in its manifest", text);
	if (i == f->manifest.entries || !want || &f->manifest.entry[i] < want)
		return dl_fail(f->e, DL_DATA, "%s: comes twice", text);
	return dl_fail(f->e, DL_DATA, "%s: missing, there is %s in its place",
		scrubbed(wanted, want->name), text);
}

static int refuse_kind(struct dl_checkpoint_file *f,
	struct archive_entry *header, const struct dl_entry *want)
{
	if (dl_archive.entry_filetype(header) != AE_IFREG ||
		dl_archive.entry_hardlink(header) ||
		dl_archive.entry_symlink(header) ||
		dl_archive.entry_sparse_count(header))
		return dl_fail(f->e, DL_DATA, "not a regular file");
	if (!dl_archive.entry_size_is_set(header) ||
		dl_archive.entry_size(header) < 0 ||
		(uint64_t)dl_archive.entry_size(header) != want->bytes)
		return dl_fail(f->e, DL_DATA,
			"%lld bytes, but its manifest says %llu",
			(long long)dl_archive.entry_size(header),
			(unsigned long long)want->bytes);
	return 0;
}

/* The header of the entry that must come now; NULL: the tar must end. */
static int take_header(
	struct dl_checkpoint_file *f, const struct dl_entry *want)
{
	const char *place = want ? want->name : "after its last entry", *name;
	struct archive_entry *header;
	int rc;

	f->n++;
	rc = dl_archive.read_next_header(f->archive, &header);
	if (rc == ARCHIVE_EOF)
		return want ? dl_fail(f->e, DL_DATA, "%s: missing", place) : 0;
	if (rc != ARCHIVE_OK)
		return broken(f, place);
	name = dl_archive.entry_pathname(header);
	if (!name || !want || strcmp(name, want->name))
		return refuse_other(f, name ? name : "", want);
	dl_hash_init(&f->hash);
	rc = refuse_kind(f, header, want);
	return rc ? dl_at(f->e, "%s", place) : 0;
}

static int refuse_first(struct dl_checkpoint_file *f)
{
	return dl_fail(f->e, DL_DATA, "not a checkpoint: no tar is in it");
}

/* The first entry, whose size nothing announces but itself. */
static int take_first(struct dl_checkpoint_file *f, struct dl_entry *first)
{
	struct archive_entry *header;
	const char *name;

	f->n++;
	if (dl_archive.read_next_header(f->archive, &header) != ARCHIVE_OK)
		return f->input ? f->input : refuse_first(f);
	name = dl_archive.entry_pathname(header);
	if (!name || strcmp(name, first->name))
		return dl_fail(f->e, DL_DATA,
			"not a checkpoint: %s does not come first",
			first->name);
	if (dl_archive.entry_size(header) > 0)
		first->bytes = (uint64_t)dl_archive.entry_size(header);
	if (first->bytes > DL_MANIFEST_LIMIT)
		return dl_fail(f->e, DL_DATA, "%s: claims %llu bytes",
			first->name, (unsigned long long)first->bytes);
	if (refuse_kind(f, header, first))
		return dl_at(f->e, "%s", first->name);
	return 0;
}

static int take(struct dl_checkpoint_file *f, void *out, size_t n)
{
	for (size_t got = 0; got < n;) {
		la_ssize_t r = dl_archive.read_data(
			f->archive, (char *)out + got, n - got);

		if (r < 0)
			return broken(f, f->entry->name);
		if (!r)
			return dl_fail(f->e, DL_DATA, "%s: ends too early",
				f->entry->name);
		got += (size_t)r;
	}
	dl_hash_add(&f->hash, out, n);
	return 0;
}

/* Memory follows what comes, not what was announced. */
static int take_bytes(
	struct dl_checkpoint_file *f, struct dl_buf *out, size_t n)
{
	while (n) {
		size_t part = n < BLOCK ? n : BLOCK;
		int rc;

		dl_buf_reserve(out, part);
		rc = take(f, out->data + out->len, part);
		if (rc)
			return rc;
		out->len += part;
		n -= part;
	}
	return 0;
}

static int check_hash(struct dl_checkpoint_file *f)
{
	char hash[DL_HASH_HEX];

	dl_hash_hex(&f->hash, hash);
	if (strcmp(hash, f->entry->hash) != 0)
		return dl_fail(f->e, DL_DATA,
			"%s: not the bytes that its manifest names",
			f->entry->name);
	return 0;
}

static int take_manifest(struct dl_checkpoint_file *f)
{
	struct dl_entry first = {.bytes = 0};
	struct dl_buf text = DL_BUF_INIT;
	int rc;

	strcpy(first.name, manifest);
	rc = take_first(f, &first);

	f->entry = &first;
	if (!rc)
		rc = take_bytes(f, &text, first.bytes);
	if (!rc && dl_manifest_parse(&f->manifest, text.data, text.len, f->e))
		rc = dl_at(f->e, "%s", first.name);
	dl_buf_free(&text);
	return rc;
}

/* An entry of text, which comes as number i of the manifest. */
static int take_text(struct dl_checkpoint_file *f, size_t i, const char *name,
	uint64_t limit, struct dl_buf *out)
{
	const struct dl_entry *entry = f->manifest.entry + i;
	int rc;

	if (i >= f->manifest.entries || strcmp(entry->name, name))
		return dl_fail(
			f->e, DL_DATA, "%s: missing from its manifest", name);
	if (entry->bytes > limit)
		return dl_fail(f->e, DL_DATA, "%s: claims %llu bytes", name,
			(unsigned long long)entry->bytes);
	f->entry = entry;
	rc = take_header(f, entry);
	if (!rc)
		rc = take_bytes(f, out, entry->bytes);
	return rc ? rc : check_hash(f);
}

static int take_head(struct dl_checkpoint_file *f)
{
	const struct dl_manifest *m = &f->manifest;
	struct dl_buf text = DL_BUF_INIT;
	int rc = take_text(f, 0, "HEAD", DL_HEAD_LIMIT, &text);

	if (!rc && dl_head_parse(&f->head, text.data, text.len, f->e))
		rc = dl_at(f->e, "HEAD");
	if (!rc && (strcmp(m->run, f->head.run.name) != 0 ||
			   m->epoch != f->head.saved.epoch ||
			   m->clock != f->head.saved.clock))
		rc = dl_fail(f->e, DL_DATA, "HEAD: not that of its manifest");
	dl_buf_free(&text);
	return rc;
}

static int take_layout(struct dl_checkpoint_file *f)
{
	int rc = take_text(f, 1, "layout.tsv", LAYOUT_LIMIT, &f->layout_text);

	if (!rc && dl_layout_parse(&f->layout, (char *)f->layout_text.data,
			   f->layout_text.len, f->e))
		rc = dl_at(f->e, "layout.tsv");
	if (!rc && (strcmp(f->layout.hash, f->head.layout) != 0 ||
			   f->layout.fragments != f->head.saved.fragments))
		rc = dl_fail(f->e, DL_DATA,
			"layout.tsv: not the layout that HEAD names");
	return rc;
}

static uint64_t packed_bytes(const struct dl_checkpoint_file *f, uint32_t p)
{
	return f->layout.fragment[p].elements * sizeof(float);
}

/* Entry i is the one that HEAD has for that file, of a size that a record of
 * its fragment can have. */
static int check_entry(struct dl_checkpoint_file *f, size_t i, int kind,
	uint32_t p, const char *hash)
{
	const struct dl_entry *entry = &f->manifest.entry[i];
	char *file = dl_store_file_name(p, f->head.files[p].made);
	char *name = dl_sprintf("%s/%s", dl_store_kinds[kind], file);
	uint64_t packed = packed_bytes(f, p);
	int rc = 0;

	if (i >= f->manifest.entries || strcmp(entry->name, name))
		rc = dl_fail(f->e, DL_DATA,
			"%s: missing from its manifest, but HEAD names it",
			name);
	else if (strcmp(entry->hash, hash) != 0)
		rc = dl_fail(f->e, DL_DATA, "%s: not the bytes that HEAD names",
			name);
	else if (entry->bytes < packed + 8 ||
		 entry->bytes - packed - 8 > limits.header)
		rc = dl_fail(f->e, DL_DATA,
			"%s: %llu bytes cannot be fragment %u", name,
			(unsigned long long)entry->bytes, p);
	free(name);
	free(file);
	return rc;
}

/* The manifest has what HEAD names, in that order, and nothing else. */
static int check_entries(struct dl_checkpoint_file *f)
{
	char text[DL_ENTRY_NAME];
	size_t i = 2;
	int rc = 0;

	for (uint32_t p = 0; !rc && p < f->head.saved.fragments; p++) {
		const struct dl_head_files *files = &f->head.files[p];

		for (int kind = 0; !rc && kind < dl_head_kinds(files); kind++)
			rc = check_entry(f, i++, kind, p, files->hash[kind]);
	}
	if (!rc && i < f->manifest.entries)
		rc = dl_fail(f->e, DL_DATA,
			"%s: in its manifest, but HEAD does not name it",
			scrubbed(text, f->manifest.entry[i].name));
	return rc;
}

static int begin_tar(struct dl_checkpoint_file *f)
{
	f->archive = dl_archive.read_new();
	if (!f->archive)
		return dl_fail(f->e, DL_OSERR, "out of memory");
	/* To look for more behind the tar's end: all bytes are seen. */
	if (dl_archive.read_support_format_tar(f->archive) ||
		dl_archive.read_set_format_option(
			f->archive, "tar", "read_concatenated_archives", "1") ||
		dl_archive.read_open(f->archive, f, NULL, read_in, NULL))
		return f->input ? f->input : refuse_first(f);
	return 0;
}

static int open_file(struct dl_checkpoint_file *f)
{
	if (!strcmp(f->path, "-"))
		f->fd = STDIN_FILENO;
	else if (dl_open_read(f->path, &f->fd, f->e))
		return f->e->code;
	dl_input_init(&f->in, f->fd);
	return 0;
}

static int take_beginning(struct dl_checkpoint_file *f)
{
	int rc = begin_tar(f);

	if (!rc)
		rc = take_manifest(f);
	if (!rc)
		rc = take_head(f);
	if (!rc)
		rc = take_layout(f);
	if (!rc)
		rc = check_entries(f);
	return rc ? dl_at(f->e, "%s", f->path) : 0;
}

int dl_checkpoint_open(
	struct dl_checkpoint_file *f, const char *path, struct dl_err *e)
{
	*f = (struct dl_checkpoint_file){.path = path, .fd = -1, .e = e};
	if (open_file(f) || dl_archive_load(e))
		return e->code;
	f->block = dl_alloc(BLOCK);
	return take_beginning(f);
}

void dl_checkpoint_close(struct dl_checkpoint_file *f)
{
	if (f->archive)
		dl_archive.read_free(f->archive);
	if (f->fd >= 0)
		dl_input_release(&f->in);
	if (f->fd > STDIN_FILENO)
		close(f->fd);
	free(f->block);
	dl_buf_free(&f->record);
	dl_buf_free(&f->layout_text);
	dl_layout_release(&f->layout);
	dl_head_release(&f->head);
	dl_manifest_release(&f->manifest);
}

/* Length and JSON of the record, which must be fragment p's. */
static int take_record(struct dl_checkpoint_file *f)
{
	uint64_t n = f->entry->bytes - 8 - f->left;
	struct dl_header h;
	int rc;

	dl_buf_clear(&f->record);
	rc = take_bytes(f, &f->record, 8);
	if (!rc && dl_le64(f->record.data) != n)
		rc = dl_fail(f->e, DL_DATA,
			"%s: header claims %llu bytes, not %llu",
			f->entry->name,
			(unsigned long long)dl_le64(f->record.data),
			(unsigned long long)n);
	if (!rc)
		rc = take_bytes(f, &f->record, n);
	if (rc)
		return rc;
	rc = dl_header_parse(&h, f->record.data + 8, n, f->e);
	if (!rc) {
		rc = dl_layout_check_record(&f->layout, f->p, &h, f->e);
		dl_header_release(&h);
	}
	return rc ? dl_at(f->e, "%s", f->entry->name) : 0;
}

/* Kinds of a fragment in order, then those of the next. */
static void advance(struct dl_checkpoint_file *f)
{
	if (f->n > FIRST && ++f->kind == dl_head_kinds(&f->head.files[f->p])) {
		f->kind = 0;
		f->p++;
	}
}

int dl_checkpoint_next(struct dl_checkpoint_file *f)
{
	int rc;

	if (f->n > f->manifest.entries) {
		rc = take_header(f, NULL);
		return rc ? dl_at(f->e, "%s", f->path) : DL_NO;
	}
	advance(f);
	f->entry = &f->manifest.entry[f->n - 1];
	f->left = packed_bytes(f, f->p);
	rc = take_header(f, f->entry);
	if (!rc)
		rc = take_record(f);
	return rc ? dl_at(f->e, "%s", f->path) : 0;
}

int dl_checkpoint_data(struct dl_checkpoint_file *f, void *out, size_t n)
{
	int rc = take(f, out, n);

	f->left -= n;
	return rc ? dl_at(f->e, "%s", f->path) : 0;
}

int dl_checkpoint_whole(struct dl_checkpoint_file *f)
{
	return check_hash(f) ? dl_at(f->e, "%s", f->path) : 0;
}

void dl_checkpoint_describe(
	const struct dl_checkpoint_file *f, struct dl_checkpoint_info *info)
{
	*info = (struct dl_checkpoint_info){
		.run = f->head.run,
		.epoch = f->manifest.epoch,
		.clock = f->manifest.clock,
		.fragments = f->layout.fragments,
		.made = f->manifest.made,
	};
	for (uint32_t p = 0; p < f->layout.fragments; p++)
		info->bytes += (uint64_t)dl_head_kinds(&f->head.files[p]) *
			       packed_bytes(f, p);
}
