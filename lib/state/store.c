#include "state/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "state/head.h"
#include "state/store_file.h"

/* Bytes of HEAD that are read; a writer stays far below. */
enum { HEAD_LIMIT = 1 << 28 };

struct dl_store {
	char *folder;
	int lock; /* descriptor; -1 for DL_STORE_LOOK */
	struct dl_layout layout;
	struct dl_head head;
	struct dl_buf text; /* of HEAD, as it was read or written */
};

static const char *const kinds[] = {"global", "momentum"};
enum { GLOBAL, MOMENTUM, KINDS };

static char *path_in(const char *folder, const char *name)
{
	return dl_sprintf("%s/%s", folder, name);
}

static char *file_name(uint32_t p, struct dl_version made)
{
	return dl_sprintf(
		"%" PRIu32 ".%" PRIu64 ".%" PRIu64, p, made.epoch, made.number);
}

static char *file_path(
	const char *folder, int kind, uint32_t p, struct dl_version made)
{
	char *name = file_name(p, made);
	char *path = dl_sprintf("%s/%s/%s", folder, kinds[kind], name);

	free(name);
	return path;
}

/* The lock that makes an owner; it lasts until *fd is closed. */
static int take_lock(const char *folder, int *fd, struct dl_err *e)
{
	struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char *path = path_in(folder, "lock");
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

static int write_head(
	const char *folder, const struct dl_buf *text, struct dl_err *e)
{
	char *path = path_in(folder, "HEAD");
	int rc = dl_write_file(path, text->data, text->len, e);

	free(path);
	return rc;
}

/* One of the two files of fragment p, at its version in h->saved. */
static int write_file(const char *folder, const struct dl_head *h,
	const struct dl_layout *l, int kind, uint32_t p, const float *data,
	char *hash, struct dl_err *e)
{
	const struct dl_sync_saved_fragment *f = h->saved.fragment + p;
	struct dl_writer w = DL_WRITER_INIT;
	char *path = file_path(folder, kind, p, f->version);
	char version[48];
	int rc;

	snprintf(version, sizeof version, "%" PRIu64 ".%" PRIu64,
		f->version.epoch, f->version.number);
	dl_writer_meta(&w, "dl.format", "1");
	dl_writer_meta(&w, "dl.kind", kind == GLOBAL ? "params" : "momentum");
	dl_writer_meta(&w, "dl.run", h->run.name);
	dl_writer_meta(&w, "dl.layout", h->layout);
	dl_writer_meta_u64(&w, "dl.fragment", p);
	dl_writer_meta_u64(&w, "dl.step", f->step);
	dl_writer_meta(&w, "dl.version", version);
	rc = dl_store_file_write(path, &w, l, p, data, hash, e);
	free(path);
	return rc;
}

/* Both files of fragment p; files gets their version and hashes. */
static int write_files(const char *folder, const struct dl_head *h,
	const struct dl_layout *l, uint32_t p, const float *values,
	const float *momentum, struct dl_head_files *files, struct dl_err *e)
{
	int rc = write_file(folder, h, l, GLOBAL, p, values, files->global, e);

	if (!rc)
		rc = write_file(folder, h, l, MOMENTUM, p, momentum,
			files->momentum, e);
	files->made = h->saved.fragment[p].version;
	return rc;
}

static int write_layout(
	const char *folder, const struct dl_layout *l, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	char *path = path_in(folder, "layout.tsv");
	int rc;

	dl_layout_write(l, &text);
	rc = dl_write_file(path, text.data, text.len, e);
	dl_buf_free(&text);
	free(path);
	return rc;
}

static int write_first(const char *folder, struct dl_head *h,
	const struct dl_layout *l, const float *const *values, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	uint64_t most = 1;
	float *zero;
	int rc = write_layout(folder, l, e);

	for (uint32_t p = 0; p < l->fragments; p++)
		if (l->fragment[p].elements > most)
			most = l->fragment[p].elements;
	zero = dl_big_alloc(most * sizeof *zero);
	for (uint32_t p = 0; !rc && p < l->fragments; p++)
		rc = write_files(
			folder, h, l, p, values[p], zero, h->files + p, e);
	dl_big_free(zero, most * sizeof *zero);
	if (!rc) {
		dl_head_write(&text, h);
		rc = write_head(folder, &text, e);
	}
	dl_buf_free(&text);
	return rc;
}

static int make_folders(const char *folder, struct dl_err *e)
{
	int rc = dl_make_folder(folder, e);

	for (int k = 0; !rc && k < KINDS; k++) {
		char *path = path_in(folder, kinds[k]);

		rc = dl_make_folder(path, e);
		free(path);
	}
	return rc;
}

static int refuse_second(const char *folder, struct dl_err *e)
{
	char *path = path_in(folder, "HEAD");
	struct stat st;
	int rc = 0;

	if (!lstat(path, &st))
		rc = dl_fail(e, DL_CANTCREAT, "%s: there is a store already",
			folder);
	free(path);
	return rc;
}

int dl_store_create(const char *folder, const struct dl_store_run *run,
	const struct dl_layout *layout, const struct dl_sync_saved *saved,
	const float *const *values, struct dl_err *e)
{
	struct dl_head h = {.run = *run, .saved = *saved};
	int lock, rc;

	if (saved->fragments != layout->fragments)
		return dl_fail(e, DL_SOFTWARE,
			"%s: state of %u fragments, layout of %u", folder,
			saved->fragments, layout->fragments);
	rc = make_folders(folder, e);
	if (!rc)
		rc = take_lock(folder, &lock, e);
	if (rc)
		return rc;
	memcpy(h.layout, layout->hash, sizeof h.layout);
	h.files = dl_alloc_array(layout->fragments, sizeof *h.files);
	rc = refuse_second(folder, e);
	if (!rc)
		rc = write_first(folder, &h, layout, values, e);
	free(h.files);
	close(lock);
	return rc;
}

static int read_head(struct dl_store *s, struct dl_err *e)
{
	char *path = path_in(s->folder, "HEAD");
	int rc = dl_read_file(path, HEAD_LIMIT, &s->text, e);

	if (!rc && dl_head_parse(&s->head, s->text.data, s->text.len, e))
		rc = dl_at(e, "%s", path);
	free(path);
	return rc;
}

static int read_layout(struct dl_store *s, struct dl_err *e)
{
	char *path = path_in(s->folder, "layout.tsv");
	int rc = dl_layout_read(&s->layout, path, e);

	if (!rc && strcmp(s->layout.hash, s->head.layout) != 0)
		rc = dl_fail(
			e, DL_DATA, "%s: not the layout that HEAD names", path);
	else if (!rc && s->layout.fragments != s->head.saved.fragments)
		rc = dl_fail(e, DL_DATA, "%s: %u fragments, but HEAD has %u",
			path, s->layout.fragments, s->head.saved.fragments);
	free(path);
	return rc;
}

/* 1 when name is global's or momentum's, and HEAD does not name it. */
static int is_leftover(const struct dl_store *s, const char *name)
{
	char *end, *now;
	unsigned long p;
	int named;

	if (*name < '0' || *name > '9')
		return 0;
	p = strtoul(name, &end, 10);
	if (*end != '.' || p >= s->layout.fragments)
		return *end == '.';
	now = file_name((uint32_t)p, s->head.files[p].made);
	named = !strcmp(name, now);
	free(now);
	return !named;
}

static int is_temporary(const struct dl_store *s, const char *name)
{
	(void)s;
	return !strncmp(name, "HEAD.tmp.", 9) ||
	       !strncmp(name, "layout.tsv.tmp.", 15);
}

static int remove_from(const struct dl_store *s, const char *sub,
	int (*unwanted)(const struct dl_store *s, const char *name),
	struct dl_err *e)
{
	char *folder = path_in(s->folder, sub);
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	if (!d)
		rc = dl_fail_sys(e, DL_IOERR, "%s", folder);
	while (d && !rc && (entry = readdir(d)))
		if (unwanted(s, entry->d_name) &&
			unlinkat(dirfd(d), entry->d_name, 0))
			rc = dl_fail_sys(
				e, DL_IOERR, "%s/%s", folder, entry->d_name);
	if (d)
		closedir(d);
	free(folder);
	return rc;
}

/* What a crash left between two commits. */
static int collect(const struct dl_store *s, struct dl_err *e)
{
	int rc = remove_from(s, ".", is_temporary, e);

	for (int k = 0; !rc && k < KINDS; k++)
		rc = remove_from(s, kinds[k], is_leftover, e);
	return rc;
}

static int refuse_missing(const char *folder, struct dl_err *e)
{
	char *path = path_in(folder, "HEAD");
	int rc = access(path, F_OK)
			 ? dl_fail_sys(e,
				   errno == ENOENT || errno == ENOTDIR
					   ? DL_NOINPUT
					   : DL_IOERR,
				   "%s", path)
			 : 0;

	free(path);
	return rc;
}

int dl_store_open(struct dl_store **out, const char *folder,
	enum dl_store_mode mode, struct dl_err *e)
{
	struct dl_store *s = dl_alloc(sizeof *s);
	int rc;

	*out = NULL;
	s->lock = -1;
	s->folder = dl_strdup(folder);
	/* Before the lock, which would make a file in any folder. */
	rc = refuse_missing(folder, e);
	if (!rc && mode == DL_STORE_OWN)
		rc = take_lock(folder, &s->lock, e);
	if (!rc)
		rc = read_head(s, e);
	if (!rc)
		rc = read_layout(s, e);
	if (!rc && mode == DL_STORE_OWN)
		rc = collect(s, e);
	if (rc)
		dl_store_close(s);
	else
		*out = s;
	return rc;
}

void dl_store_close(struct dl_store *s)
{
	if (!s)
		return;
	if (s->lock >= 0)
		close(s->lock);
	dl_head_release(&s->head);
	dl_layout_release(&s->layout);
	dl_buf_free(&s->text);
	free(s->folder);
	free(s);
}

const struct dl_store_run *dl_store_run(const struct dl_store *s)
{
	return &s->head.run;
}

const struct dl_layout *dl_store_layout(const struct dl_store *s)
{
	return &s->layout;
}

const struct dl_sync_saved *dl_store_saved(const struct dl_store *s)
{
	return &s->head.saved;
}

/* 1 when HEAD on disk is no longer the one this store was opened from. */
static int head_moved(const struct dl_store *s)
{
	struct dl_buf now = DL_BUF_INIT;
	char *path = path_in(s->folder, "HEAD");
	int moved = !dl_read_file(path, HEAD_LIMIT, &now, NULL) &&
		    (now.len != s->text.len ||
			    memcmp(now.data, s->text.data, now.len) != 0);

	dl_buf_free(&now);
	free(path);
	return moved;
}

static int load_file(const struct dl_store *s, int kind, uint32_t p,
	float *data, const char *hash, struct dl_err *e)
{
	char *path;
	int rc;

	if (!data)
		return 0;
	path = file_path(s->folder, kind, p, s->head.files[p].made);
	rc = dl_store_file_read(path, &s->layout, p, data, hash, e);
	if (rc == DL_NOINPUT && s->lock < 0 && head_moved(s))
		rc = dl_fail(e, DL_TEMPFAIL,
			"%s: replaced by a newer version meanwhile", path);
	else if (rc == DL_NOINPUT)
		rc = dl_fail(
			e, DL_DATA, "%s: missing, but HEAD names it", path);
	free(path);
	return rc;
}

int dl_store_load(struct dl_store *s, uint32_t p, float *values,
	float *momentum, struct dl_err *e)
{
	const struct dl_head_files *f = s->head.files + p;
	int rc = load_file(s, GLOBAL, p, values, f->global, e);

	return rc ? rc : load_file(s, MOMENTUM, p, momentum, f->momentum, e);
}

/*
 * Makes next the state of the store, on disk and then here. It goes through
 * its own text, so what is committed can be read again.
 */
static int move_head(
	struct dl_store *s, const struct dl_head *next, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_head read;
	int rc;

	dl_head_write(&text, next);
	if (dl_head_parse(&read, text.data, text.len, e))
		rc = dl_fail(e, DL_SOFTWARE, "%s/HEAD: would be unreadable",
			s->folder);
	else
		rc = write_head(s->folder, &text, e);
	if (rc) {
		dl_head_release(&read);
		dl_buf_free(&text);
		return rc;
	}
	dl_head_release(&s->head);
	dl_buf_free(&s->text);
	s->head = read;
	s->text = text;
	return 0;
}

/* A commit that its caller should not have asked for. */
static int refuse_commit(const struct dl_store *s,
	const struct dl_sync_saved *saved, struct dl_err *e)
{
	if (s->lock < 0)
		return dl_fail(
			e, DL_SOFTWARE, "%s: opened to look only", s->folder);
	if (saved->fragments != s->layout.fragments)
		return dl_fail(e, DL_SOFTWARE,
			"%s: state of %u fragments, layout of %u", s->folder,
			saved->fragments, s->layout.fragments);
	return 0;
}

/* The files that a commit replaced. What stays is collected at open. */
static void remove_files(
	const struct dl_store *s, uint32_t p, struct dl_version made)
{
	for (int k = 0; k < KINDS; k++) {
		char *path = file_path(s->folder, k, p, made);

		unlink(path);
		free(path);
	}
}

int dl_store_commit(struct dl_store *s, uint32_t p, const float *values,
	const float *momentum, const struct dl_sync_saved *saved,
	struct dl_err *e)
{
	struct dl_head next = s->head;
	struct dl_version made = s->head.files[p].made;
	size_t size = s->layout.fragments * sizeof *next.files;
	int rc = refuse_commit(s, saved, e);

	/* A name is used once: HEAD may still name the file of that version. */
	if (!rc && dl_version_cmp(saved->fragment[p].version, made) <= 0)
		rc = dl_fail(e, DL_SOFTWARE,
			"%s: fragment %u is at that version already", s->folder,
			p);
	if (rc)
		return rc;
	next.saved = *saved;
	next.files = dl_alloc(size);
	memcpy(next.files, s->head.files, size);
	rc = write_files(s->folder, &next, &s->layout, p, values, momentum,
		next.files + p, e);
	if (!rc)
		rc = move_head(s, &next, e);
	free(next.files);
	if (!rc)
		remove_files(s, p, made);
	return rc;
}

int dl_store_commit_saved(
	struct dl_store *s, const struct dl_sync_saved *saved, struct dl_err *e)
{
	struct dl_head next = s->head;
	int rc = refuse_commit(s, saved, e);

	if (rc)
		return rc;
	next.saved = *saved;
	return move_head(s, &next, e);
}
