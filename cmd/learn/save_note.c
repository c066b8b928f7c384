#include "cmd/learn/save_note.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "state/fields.h"

enum { NOTE_MAX = 4096, PIECE = 1 << 20 };

static const struct dl_field numbers[] = {
	{"epoch", DL_FIELD_U64, offsetof(struct save_note, epoch), NULL},
	{"clock", DL_FIELD_U64, offsetof(struct save_note, clock), NULL},
	{"bytes", DL_FIELD_U64, offsetof(struct save_note, bytes), NULL},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers, ALL = (1 << NUMBERS) - 1 };

static void put(struct dl_buf *out, const char *key, const char *value)
{
	dl_put_key(out, key);
	dl_put_string(out, value);
}

static int write_note(
	const struct save_note *n, const char *path, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int code;

	dl_buf_byte(&text, '{');
	put(&text, "format", "dl-save 1");
	put(&text, "run", n->run);
	put(&text, "learner", n->learner);
	put(&text, "layout", n->layout);
	dl_put_fields(&text, numbers, NUMBERS, ALL, n);
	put(&text, "file", n->file);
	put(&text, "hash", n->hash);
	dl_buf_str(&text, "}\n");
	code = dl_write_file(path, text.data, text.len, e);
	dl_buf_free(&text);
	return code;
}

static int parse(struct save_note *n, struct dl_json *j)
{
	int rc = dl_take(j, DL_JSON_OBJECT);

	if (rc || (rc = dl_take_key(j, "format")) ||
		(rc = dl_take_exactly(j, "dl-save 1")) ||
		(rc = dl_take_key(j, "run")) ||
		(rc = dl_take_name(j, n->run)) ||
		(rc = dl_take_key(j, "learner")) ||
		(rc = dl_take_name(j, n->learner)) ||
		(rc = dl_take_key(j, "layout")) ||
		(rc = dl_take_hash(j, n->layout)) ||
		(rc = dl_take_fields(j, numbers, NUMBERS, ALL, n)) ||
		(rc = dl_take_key(j, "file")) ||
		(rc = dl_take_name(j, n->file)) ||
		(rc = dl_take_key(j, "hash")) ||
		(rc = dl_take_hash(j, n->hash)) ||
		(rc = dl_take(j, DL_JSON_OBJECT_END)))
		return rc;
	return dl_take(j, DL_JSON_END);
}

static int read_note(struct save_note *n, const char *path, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int code = dl_read_file(path, NOTE_MAX, &text, e);
	struct dl_json j;

	if (!code) {
		dl_json_init(&j, text.data, text.len, e);
		code = parse(n, &j);
		dl_json_release(&j);
		if (code)
			dl_at(e, "%s", path);
	}
	dl_buf_free(&text);
	return code;
}

/* Bytes and hash of what fd holds; stop may be NULL. */
static int measure(
	struct save_note *n, int fd, const atomic_int *stop, struct dl_err *e)
{
	unsigned char *piece = dl_alloc(PIECE);
	struct dl_hash hash;
	ssize_t got;

	dl_hash_init(&hash);
	n->bytes = 0;
	while ((got = dl_pread_full(fd, piece, PIECE, n->bytes)) > 0 &&
		!(stop && *stop)) {
		dl_hash_add(&hash, piece, (size_t)got);
		n->bytes += (uint64_t)got;
	}
	free(piece);
	dl_hash_hex(&hash, n->hash);
	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "%s", n->file);
	return got ? dl_fail(e, DL_TEMPFAIL, "stopped") : 0;
}

static int open_save(const struct save_note *n, const char *folder, int *fd,
	struct dl_err *e)
{
	char *path = dl_sprintf("%s/%s", folder, n->file);
	struct stat st;
	int code = 0;

	*fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd < 0 || fstat(*fd, &st))
		code = dl_fail_sys(e, DL_DATA, "%s", path);
	else if (!S_ISREG(st.st_mode))
		code = dl_fail(e, DL_DATA, "%s: is no file", path);
	if (code && *fd >= 0)
		close(*fd);
	free(path);
	return code;
}

int save_note_seal(struct save_note *n, const char *folder, struct dl_err *e)
{
	char *path = dl_sprintf("%s/" SAVE_NOTE, folder);
	int fd, code = open_save(n, folder, &fd, e);

	if (!code) {
		if (fsync(fd))
			code = dl_fail_sys(
				e, DL_IOERR, "%s/%s", folder, n->file);
		if (!code)
			code = measure(n, fd, NULL, e);
		close(fd);
	}
	if (!code)
		code = write_note(n, path, e);
	free(path);
	return code;
}

static int refuse_others(const struct save_note *n, const struct save_note *own,
	const char *folder, struct dl_err *e)
{
	const char *fact = NULL, *is = "", *not = "";

	if (strcmp(n->run, own->run)) {
		fact = "run";
		is = n->run;
		not = own->run;
	} else if (strcmp(n->learner, own->learner)) {
		fact = "learner";
		is = n->learner;
		not = own->learner;
	} else if (strcmp(n->layout, own->layout)) {
		fact = "layout";
		is = n->layout;
		not = own->layout;
	}
	if (fact)
		return dl_fail(e, DL_DATA, "%s: a save of %s %.16s, not %.16s",
			folder, fact, is, not );
	if (n->epoch > own->epoch)
		return dl_fail(e, DL_DATA,
			"%s: a save of epoch %llu, which run %s has not "
			"reached",
			folder, (unsigned long long)n->epoch, own->run);
	return 0;
}

static int check_bytes(const struct save_note *n, const char *folder,
	const atomic_int *stop, struct dl_err *e)
{
	struct save_note is = *n;
	int fd, code = open_save(n, folder, &fd, e);

	if (code)
		return code;
	code = measure(&is, fd, stop, e);
	close(fd);
	if (!code && (is.bytes != n->bytes || strcmp(is.hash, n->hash)))
		code = dl_fail(e, DL_DATA,
			"%s/%s: not the bytes that its note names", folder,
			n->file);
	return code;
}

int save_note_find(struct save_note *n, const struct save_note *own,
	const char *folder, const atomic_int *stop, struct dl_err *e)
{
	char *path = dl_sprintf("%s/" SAVE_NOTE, folder);
	int code = read_note(n, path, e);

	if (!code)
		code = refuse_others(n, own, folder, e);
	if (!code)
		code = check_bytes(n, folder, stop, e);
	free(path);
	return code;
}
