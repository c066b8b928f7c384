#include "state/store.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "state/head.h"
#include "state/store_file.h"
#include "state/store_folder.h"
#include "state/store_pin.h"
#include "state/store_write.h"

struct dl_store {
	char *folder;
	int lock; /* descriptor; -1 for DL_STORE_LOOK */
	struct dl_layout layout;
	struct dl_store_run run;
	struct dl_head head;
	struct dl_buf text; /* of HEAD, as it was read or written */
	int newer;	    /* hashes are known that it does not have */
	struct dl_pin *pins;
};

static int read_head(struct dl_store *s, struct dl_err *e)
{
	char *path = dl_store_path(s->folder, "HEAD");
	int rc = dl_read_file(path, DL_HEAD_LIMIT, &s->text, e);

	if (!rc && dl_head_parse(&s->head, s->text.data, s->text.len, e))
		rc = dl_at(e, "%s", path);
	free(path);
	return rc;
}

static int read_layout(struct dl_store *s, struct dl_err *e)
{
	char *path = dl_store_path(s->folder, "layout.tsv");
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

/* 1 when name is a fragment's, and HEAD does not name it. */
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
	now = dl_store_file_name((uint32_t)p, s->head.files[p].made);
	named = !strcmp(name, now);
	free(now);
	return !named;
}

static int is_temporary(const struct dl_store *s, const char *name)
{
	(void)s;
	return !strncmp(name, "HEAD.tmp.", 9) ||
	       !strncmp(name, "layout.tsv.tmp.", 15) ||
	       !strncmp(name, "seen.tmp.", 9);
}

static int remove_from(const struct dl_store *s, const char *sub,
	int (*unwanted)(const struct dl_store *s, const char *name),
	struct dl_err *e)
{
	char *folder = dl_store_path(s->folder, sub);
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	if (!d && errno != ENOENT)
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

/* What a crash left between two commits. Whoever made HEAD may have died before
 * its name was synced, so that is done before the files of the HEAD that it
 * replaced are removed. */
static int collect(const struct dl_store *s, struct dl_err *e)
{
	int rc = dl_fsync_folder(s->folder, e);

	if (!rc)
		rc = remove_from(s, ".", is_temporary, e);
	for (int k = 0; !rc && k < DL_STORE_KINDS; k++)
		rc = remove_from(s, dl_store_kinds[k], is_leftover, e);
	return rc;
}

static int refuse_missing(const char *folder, struct dl_err *e)
{
	char *path = dl_store_path(folder, "HEAD");
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
		rc = dl_store_lock(folder, &s->lock, e);
	if (!rc)
		rc = read_head(s, e);
	if (!rc)
		rc = read_layout(s, e);
	s->run = s->head.run;
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
	return &s->run;
}

const struct dl_layout *dl_store_layout(const struct dl_store *s)
{
	return &s->layout;
}

const struct dl_sync_saved *dl_store_saved(const struct dl_store *s)
{
	return &s->head.saved;
}

const struct dl_head_files *dl_store_files(const struct dl_store *s, uint32_t p)
{
	return s->head.files + p;
}

/* HEAD on disk is, or is not, the one that this store has; 0 for both when it
 * cannot be read. */
static int head_is(const struct dl_store *s, int same)
{
	struct dl_buf now = DL_BUF_INIT;
	char *path = dl_store_path(s->folder, "HEAD");
	int known = !dl_read_file(path, DL_HEAD_LIMIT, &now, NULL);
	int equal = known && now.len == s->text.len &&
		    !memcmp(now.data, s->text.data, now.len);

	dl_buf_free(&now);
	free(path);
	return known && equal == same;
}

static int load_file(
	struct dl_store *s, int kind, uint32_t p, float *data, struct dl_err *e)
{
	struct dl_head_files *files = &s->head.files[p];
	char *path;
	int rc;

	if (!data)
		return 0;
	s->newer |= !*files->hash[kind];
	path = dl_store_file_path(s->folder, kind, p, files->made);
	rc = dl_store_file_read(
		path, &s->layout, p, data, files->hash[kind], e);
	if (rc == DL_NOINPUT && s->lock < 0 && head_is(s, 0))
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
	int rc = load_file(s, DL_STORE_GLOBAL, p, values, e);

	return rc ? rc : load_file(s, DL_STORE_MOMENTUM, p, momentum, e);
}

int dl_store_load_error(
	struct dl_store *s, uint32_t p, float *error, struct dl_err *e)
{
	if (!s->head.files[p].error)
		return dl_fail(e, DL_NO, "no error");
	return load_file(s, DL_STORE_ERROR, p, error, e);
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
		rc = dl_store_write_head(s->folder, &text, e);
	if (rc) {
		dl_head_release(&read);
		dl_buf_free(&text);
		return rc;
	}
	dl_head_release(&s->head);
	dl_buf_free(&s->text);
	s->head = read;
	s->text = text;
	s->newer = 0;
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

static void remove_kinds(
	const struct dl_store *s, uint32_t p, struct dl_version made, int kinds)
{
	for (int k = 0; k < kinds; k++) {
		char *path = dl_store_file_path(s->folder, k, p, made);

		unlink(path);
		free(path);
	}
}

/* The files that a commit replaced. What stays is collected at open. */
static void remove_files(
	const struct dl_store *s, uint32_t p, const struct dl_head_files *files)
{
	remove_kinds(s, p, files->made, dl_head_kinds(files));
}

int dl_store_write_begin(const struct dl_store *s, struct dl_store_write *w,
	const struct dl_sync_saved *saved, struct dl_err *e)
{
	int rc = refuse_commit(s, saved, e);

	if (rc)
		return rc;
	w->version = saved->fragment[w->p].version;
	w->step = saved->fragment[w->p].step;
	/* A name is used once: HEAD may still name the file of that version. */
	if (dl_version_cmp(w->version, s->head.files[w->p].made) <= 0)
		return dl_fail(e, DL_SOFTWARE,
			"%s: fragment %u is at that version already", s->folder,
			w->p);
	return 0;
}

/* Of s only what never changes is read: others use it. */
int dl_store_write(const struct dl_store *s, struct dl_pool *pool,
	struct dl_store_write *w, struct dl_err *e)
{
	const struct dl_store_label label = {
		s->run.name, w->p, w->version, w->step};

	return dl_store_write_files(
		pool, s->folder, &label, &s->layout, &w->content, &w->files, e);
}

int dl_store_write_end(struct dl_store *s, struct dl_store_write *w, size_t n,
	const struct dl_sync_saved *saved, struct dl_err *e)
{
	struct dl_head next = s->head;
	uint32_t fragments = s->layout.fragments;
	int rc;

	next.saved = *saved;
	next.files = dl_alloc_array(fragments, sizeof *next.files);
	memcpy(next.files, s->head.files, fragments * sizeof *next.files);
	for (size_t i = 0; i < n; i++) {
		w[i].replaced = s->head.files[w[i].p];
		next.files[w[i].p] = w[i].files;
	}
	rc = move_head(s, &next, e);
	free(next.files);
	return rc;
}

void dl_store_write_tidy(
	const struct dl_store *s, const struct dl_store_write *w, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct dl_head_files *files = &w[i].replaced;

		if (!dl_pins_name(s->pins, w[i].p, files->made))
			remove_files(s, w[i].p, files);
	}
}

void dl_store_write_undo(
	const struct dl_store *s, const struct dl_store_write *w, size_t n)
{
	if (!head_is(s, 1))
		return;
	for (size_t i = 0; i < n; i++)
		if (dl_version_cmp(w[i].version, s->head.files[w[i].p].made) >
			0)
			remove_kinds(s, w[i].p, w[i].version, DL_STORE_KINDS);
}

int dl_store_commit(struct dl_store *s, uint32_t p, const float *values,
	const float *momentum, const float *error,
	const struct dl_sync_saved *saved, struct dl_err *e)
{
	struct dl_store_write w = {
		.p = p, .content.data = {values, momentum, error}};
	int rc = dl_store_write_begin(s, &w, saved, e);

	if (!rc)
		rc = dl_store_write(s, NULL, &w, e);
	if (!rc)
		rc = dl_store_write_end(s, &w, 1, saved, e);
	if (!rc)
		dl_store_write_tidy(s, &w, 1);
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

int dl_store_hash_begin(const struct dl_store *s, struct dl_store_hashes *h)
{
	h->files = s->head.files[h->p];
	for (int kind = 0; kind < dl_head_kinds(&h->files); kind++)
		if (!*h->files.hash[kind])
			return 0;
	return DL_NO;
}

/* Of s only what never changes is read: others use it. */
int dl_store_hash(const struct dl_store *s, struct dl_store_hashes *h,
	const atomic_int *stop, struct dl_err *e)
{
	int rc = 0;

	for (int kind = 0; !rc && kind < dl_head_kinds(&h->files); kind++) {
		char *path = dl_store_file_path(
			s->folder, kind, h->p, h->files.made);

		rc = dl_store_file_hash(path, stop, h->files.hash[kind], e);
		free(path);
	}
	return rc;
}

void dl_store_hash_end(struct dl_store *s, const struct dl_store_hashes *h)
{
	struct dl_head_files *files = &s->head.files[h->p];

	if (dl_version_cmp(files->made, h->files.made) != 0)
		return;
	*files = h->files;
	s->newer = 1;
}

int dl_store_hash_save(struct dl_store *s, struct dl_err *e)
{
	return s->newer ? move_head(s, &s->head, e) : 0;
}

struct dl_pin *dl_store_pin(struct dl_store *s)
{
	struct dl_pin *pin = dl_alloc(sizeof *pin);
	struct dl_buf text = DL_BUF_INIT;

	pin->folder = dl_strdup(s->folder);
	dl_head_write(&text, &s->head);
	/* What was committed can be read again. */
	dl_head_parse(&pin->head, text.data, text.len, NULL);
	dl_buf_free(&text);
	pin->next = s->pins;
	s->pins = pin;
	return pin;
}

static void unlink_pin(struct dl_store *s, const struct dl_pin *pin)
{
	struct dl_pin **at = &s->pins;

	while (*at != pin)
		at = &(*at)->next;
	*at = pin->next;
}

void dl_store_unpin(struct dl_store *s, struct dl_pin *pin)
{
	unlink_pin(s, pin);
	for (uint32_t p = 0; p < s->layout.fragments; p++) {
		struct dl_version made = pin->head.files[p].made;

		if (dl_version_cmp(made, s->head.files[p].made) &&
			!dl_pins_name(s->pins, p, made))
			remove_files(s, p, &pin->head.files[p]);
	}
	dl_head_release(&pin->head);
	free(pin->folder);
	free(pin);
}
