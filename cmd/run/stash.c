#include "cmd/run/stash.h"

#include <errno.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input.h"
#include "base/num.h"
#include "base/output.h"

enum { PIECE = 1 << 18 };

static char *path_of(const struct stash *s, uint64_t id)
{
	return dl_sprintf("%s/%" PRIu64, s->folder, id);
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A name is an id, or what a copy that was not finished left. */
static int meet(struct stash *s, DIR *d, const char *name, struct dl_err *e)
{
	uint64_t id;

	if (!dl_parse_u64(name, 1, UINT64_MAX - 1, &id)) {
		if (!(s->ids & (s->ids - 1)))
			s->id = dl_resize(
				s->id, s->ids ? 2 * s->ids : 1, sizeof *s->id);
		s->id[s->ids++] = id;
	} else if (strstr(name, ".tmp.") && unlinkat(dirfd(d), name, 0)) {
		return dl_fail_sys(e, DL_IOERR, "%s/%s", s->folder, name);
	}
	return 0;
}

static int list(struct stash *s, struct dl_err *e)
{
	DIR *d = opendir(s->folder);
	struct dirent *entry;
	int code = 0;

	if (!d)
		return dl_fail_sys(e, DL_IOERR, "%s", s->folder);
	while (!code && (entry = readdir(d)))
		code = meet(s, d, entry->d_name, e);
	closedir(d);
	if (s->ids)
		qsort(s->id, s->ids, sizeof *s->id, by_number);
	s->before = s->last = s->ids ? s->id[s->ids - 1] : 0;
	return code;
}

int stash_open(struct stash *s, const char *store, struct dl_err *e)
{
	int code;

	*s = (struct stash){.folder = dl_sprintf("%s/push", store)};
	code = dl_make_folder(s->folder, e);
	if (!code)
		code = dl_fsync_folder(store, e);
	return code ? code : list(s, e);
}

void stash_release(struct stash *s)
{
	free(s->folder);
	free(s->id);
	*s = (struct stash){0};
}

/* Copies what fd has; DL_NO when that is not what hash says. */
static int copy(int fd, struct dl_output *o, const char *hash, struct dl_err *e)
{
	unsigned char *piece = dl_alloc(PIECE);
	char hex[DL_HASH_HEX];
	struct dl_hash h;
	uint64_t at = 0;
	ssize_t n;
	int code = 0;

	dl_hash_init(&h);
	while (!code && (n = dl_pread_full(fd, piece, PIECE, at)) > 0) {
		dl_hash_add(&h, piece, (size_t)n);
		at += (uint64_t)n;
		code = dl_output_write(o, piece, (size_t)n, e);
	}
	dl_hash_hex(&h, hex);
	if (!code && n < 0)
		code = dl_fail_sys(e, DL_NO, "cannot be read");
	else if (!code && strcmp(hex, hash) != 0)
		code = dl_fail(e, DL_NO, "is not whole");
	free(piece);
	return code;
}

/* All of it, or nothing. */
static int write_copy(
	int fd, struct dl_output *o, const char *hash, struct dl_err *e)
{
	int code = copy(fd, o, hash, e);

	if (!code)
		return dl_output_commit(o, e);
	dl_output_abort(o);
	return code;
}

int stash_copy(struct stash *s, int fd, const char *hash, uint64_t *id,
	struct dl_err *e)
{
	struct dl_output o;
	char *path;
	int code;

	*id = s->last + 1;
	path = path_of(s, *id);
	code = dl_output_open(&o, path, e);
	if (!code)
		code = write_copy(fd, &o, hash, e);
	if (!code)
		s->last = *id;
	free(path);
	return code;
}

int stash_record(const struct stash *s, uint64_t id, const char *folder,
	const char *hash, struct dl_err *e)
{
	char *from = path_of(s, id), *to = dl_sprintf("%s/%s", folder, hash);
	struct dl_output o;
	int fd = -1, code = 0;

	if (access(to, F_OK)) {
		code = dl_open_read(from, &fd, e);
		if (!code)
			code = dl_output_open(&o, to, e);
		if (!code)
			code = write_copy(fd, &o, hash, e);
	}
	if (fd >= 0)
		close(fd);
	free(from);
	free(to);
	return code;
}

void stash_remove(struct stash *s, uint64_t id)
{
	char *path = path_of(s, id);

	unlink(path);
	free(path);
}

/* A metadata value as a string of this program's. */
static int take_name(
	const struct dl_header *h, const char *key, char *out, struct dl_err *e)
{
	const struct dl_string *s = dl_header_meta(h, key);

	if (!s || !dl_name_ok(s->s, s->n))
		return dl_fail(e, DL_DATA, "%s is missing or no name", key);
	memcpy(out, s->s, s->n);
	out[s->n] = '\0';
	return 0;
}

static int understand(struct stashed *p, const char *run, struct dl_err *e)
{
	const struct dl_header *h = &p->file.record[0].header;
	char its[DL_NAME_MAX + 1];

	if (p->file.records != 1)
		return dl_fail(e, DL_DATA, "more than one record");
	if (dl_message_unpack(&p->push, h, NULL, e))
		return e->code = DL_DATA;
	if (p->push.kind != DL_MSG_PUSH)
		return dl_fail(e, DL_DATA, "not a push but %s",
			dl_message_kind_name(p->push.kind));
	if (take_name(h, "dl.run", its, e) ||
		take_name(h, "dl.learner", p->learner, e) ||
		dl_header_meta_u64(h, "dl.instance", &p->instance, e))
		return DL_DATA;
	if (strcmp(its, run) != 0)
		return dl_fail(e, DL_DATA, "made for run %s", its);
	return 0;
}

/* Who reads records would decompress it, to whatever length. */
static int refuse_compressed(int fd, struct dl_err *e)
{
	unsigned char magic[DL_ZSTD_MAGIC] = {0};

	return dl_pread_full(fd, magic, sizeof magic, 0) > 0 &&
			       dl_input_is_zstd(magic, sizeof magic)
		       ? dl_fail(e, DL_DATA, "compressed")
		       : 0;
}

int stash_look(const struct stash *s, uint64_t id, const char *run,
	struct stashed *out, struct dl_err *e)
{
	char *path = path_of(s, id);
	int fd, code = dl_open_read(path, &fd, e);

	*out = (struct stashed){.file = DL_RECORDS_INIT};
	if (!code)
		code = refuse_compressed(fd, e);
	if (!code)
		code = dl_records_open_fd(&out->file, "push", fd, e);
	else if (fd >= 0)
		close(fd);
	if (!code)
		code = understand(out, run, e);
	free(path);
	return code;
}

void stashed_close(struct stashed *p)
{
	dl_message_release(&p->push);
	dl_records_close(&p->file);
}
