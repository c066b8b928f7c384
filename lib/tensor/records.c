#include "tensor/records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input.h"
#include "base/mem.h"

enum { BLOCK = 1 << 20 };

static const char *input_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

static int open_input(const char *path, int *fd, struct dl_err *e)
{
	if (strcmp(path, "-"))
		return dl_open_read(path, fd, e);
	*fd = dup(STDIN_FILENO);
	return *fd < 0 ? dl_fail_sys(e, DL_NOINPUT, "standard input") : 0;
}

/* A regular file gives its size and can be read at any place. One that someone
 * has begun to read is taken as a pipe: it goes on where they stopped; so is
 * one that is compressed. */
static int seekable(int fd, uint64_t *size)
{
	unsigned char magic[DL_ZSTD_MAGIC];
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || lseek(fd, 0, SEEK_CUR))
		return 0;
	*size = (uint64_t)st.st_size;
	return dl_pread_full(fd, magic, sizeof magic, 0) != sizeof magic ||
	       !dl_input_is_zstd(magic, sizeof magic);
}

static int temporary(int *fd, struct dl_err *e)
{
	const char *folder = getenv("TMPDIR");
	char *path =
		dl_sprintf("%s/dl-XXXXXX", folder && *folder ? folder : "/tmp");
	int rc = 0;

	*fd = mkstemp(path);
	if (*fd < 0)
		rc = dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	else
		unlink(path);
	free(path);
	return rc;
}

typedef int event_fn(void *ctx, struct dl_reader *r, enum dl_reader_event event,
	struct dl_err *e);

static int feed(struct dl_reader *r, const unsigned char *p, size_t n,
	event_fn *f, void *ctx, struct dl_err *e)
{
	enum dl_reader_event event;

	do {
		size_t taken;

		event = dl_reader_feed(r, p, n, &taken, e);
		if (event == DL_READER_BAD)
			return e->code;
		if (event != DL_READER_MORE && f(ctx, r, event, e))
			return e->code;
		p += taken;
		n -= taken;
	} while (event != DL_READER_MORE);
	return 0;
}

/* Appends a block to a temporary file; zeros, such as the deltas of what does
 * not change, become a hole. */
static int put_block(int to, const unsigned char *p, size_t n)
{
	if (!p[0] && !memcmp(p, p + 1, n - 1))
		return lseek(to, (off_t)n, SEEK_CUR) < 0 ? -1 : 0;
	return dl_write_full(to, p, n);
}

/* Reads fd to its end, with f told of each header and record, and copies it to
 * descriptor to unless that is -1. Each header is looked at as it comes: what
 * has no end may be bad at once. */
static int read_pipe(int fd, int to, event_fn *f, void *ctx, struct dl_err *e)
{
	struct dl_input in;
	struct dl_reader r;
	unsigned char *block = dl_alloc(BLOCK);
	ssize_t n;
	int empty = 1, rc = 0;

	dl_input_init(&in, fd);
	dl_reader_init(&r, (struct dl_limits)DL_LIMITS_FILE);
	while (!rc && (n = dl_input_read(&in, block, BLOCK, e)) != 0) {
		rc = n < 0 ? e->code : feed(&r, block, (size_t)n, f, ctx, e);
		if (!rc && to >= 0 && put_block(to, block, (size_t)n))
			rc = dl_fail_sys(e, DL_IOERR, "temporary file");
		empty = 0;
	}
	if (!rc)
		rc = empty ? dl_fail(e, DL_DATA, "empty")
			   : dl_reader_end(&r, e);
	dl_reader_release(&r);
	dl_input_release(&in);
	free(block);
	return rc;
}

/* The header at place at of a file of size bytes; data begin at *data. */
static int header_at(int fd, uint64_t size, uint64_t at, struct dl_header *h,
	uint64_t *data, struct dl_err *e)
{
	struct dl_limits limits = DL_LIMITS_FILE;
	unsigned char length[8];
	uint64_t n;
	void *json;
	int rc = 0;

	if (size - at < sizeof length)
		return dl_fail(e, DL_DATA, "ends inside a header's length");
	if (dl_pread_full(fd, length, sizeof length, at) != sizeof length)
		return dl_fail_sys(e, DL_IOERR, "cannot read");
	if (at && dl_input_is_zstd(length, sizeof length))
		return dl_fail(e, DL_DATA, DL_RECORD_MIXED);
	if (dl_header_check_length(length, limits.header, e))
		return e->code;
	n = dl_le64(length);
	*data = at + sizeof length + n;
	if (n > size - at - sizeof length)
		return dl_fail(e, DL_DATA,
			"header claims %llu bytes past the end",
			(unsigned long long)(*data - size));
	json = dl_alloc(n);
	if (dl_pread_full(fd, json, n, at + sizeof length) != (ssize_t)n)
		rc = dl_fail_sys(e, DL_IOERR, "cannot read");
	else
		rc = dl_header_parse(h, json, n, e);
	free(json);
	if (!rc && h->data_size > size - *data) {
		dl_fail(e, DL_DATA, "data end %llu bytes past the end",
			(unsigned long long)(h->data_size - (size - *data)));
		dl_header_release(h);
		rc = DL_DATA;
	}
	return rc;
}

/* Room for one more, which is not counted yet. */
static struct dl_records_entry *next_entry(struct dl_records *r)
{
	size_t n = r->records;

	if (!(n & (n - 1))) /* 0 or a power of two: there is no more room */
		r->record =
			dl_resize(r->record, n ? 2 * n : 1, sizeof *r->record);
	return &r->record[n];
}

static int read_headers(struct dl_records *r, struct dl_err *e)
{
	uint64_t at = 0;

	do {
		struct dl_records_entry *entry = next_entry(r);
		int rc = header_at(
			r->fd, r->size, at, &entry->header, &entry->at, e);

		if (rc)
			return at ? dl_at(e, "record %zu", r->records) : rc;
		r->records++;
		at = entry->at + entry->header.data_size;
	} while (at < r->size);
	return 0;
}

/* A record is complete: its header is taken over from the reader. */
static int keep_header(void *ctx, struct dl_reader *reader,
	enum dl_reader_event event, struct dl_err *e)
{
	struct dl_records *r = ctx;
	struct dl_records_entry *entry;

	(void)e;
	if (event != DL_READER_RECORD)
		return 0;
	entry = next_entry(r);
	entry->header = reader->header;
	reader->header = (struct dl_header){0};
	entry->at = r->size + 8 + entry->header.header_size;
	r->size = entry->at + entry->header.data_size;
	r->records++;
	return 0;
}

/* Copies what is left in r->fd to a file without a name, which replaces it. */
static int spool(struct dl_records *r, struct dl_err *e)
{
	int to, rc = temporary(&to, e);

	if (rc)
		return rc;
	rc = read_pipe(r->fd, to, keep_header, r, e);
	/* It may end in a hole. */
	if (!rc && ftruncate(to, (off_t)r->size))
		rc = dl_fail_sys(e, DL_IOERR, "temporary file");
	close(r->fd);
	r->fd = to;
	return rc;
}

static int open_fd(struct dl_records *r, const char *name, int fd,
	int headers_only, struct dl_err *e)
{
	uint64_t size;
	int rc;

	*r = (struct dl_records)DL_RECORDS_INIT;
	r->path = dl_strdup(name);
	r->fd = fd;
	if (seekable(fd, &size)) {
		r->size = size;
		rc = read_headers(r, e);
	} else {
		rc = headers_only ? read_pipe(fd, -1, keep_header, r, e)
				  : spool(r, e);
	}
	return rc ? dl_at(e, "%s", name) : 0;
}

int dl_records_open_fd(
	struct dl_records *r, const char *name, int fd, struct dl_err *e)
{
	return open_fd(r, name, fd, 0, e);
}

static int open_path(struct dl_records *r, const char *path, int headers_only,
	struct dl_err *e)
{
	int fd, rc;

	*r = (struct dl_records)DL_RECORDS_INIT;
	rc = open_input(path, &fd, e);
	return rc ? rc : open_fd(r, input_name(path), fd, headers_only, e);
}

int dl_records_open(struct dl_records *r, const char *path, struct dl_err *e)
{
	return open_path(r, path, 0, e);
}

int dl_records_open_headers(
	struct dl_records *r, const char *path, struct dl_err *e)
{
	return open_path(r, path, 1, e);
}

void dl_records_close(struct dl_records *r)
{
	for (size_t i = 0; i < r->records; i++)
		dl_header_release(&r->record[i].header);
	free(r->record);
	free(r->path);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct dl_records)DL_RECORDS_INIT;
}

int dl_records_read(const struct dl_records *r, uint64_t at, void *buf,
	size_t n, struct dl_err *e)
{
	ssize_t got = dl_pread_full(r->fd, buf, n, at);

	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "%s", r->path);
	if ((size_t)got < n)
		return dl_fail(e, DL_DATA, "%s: shorter than it was", r->path);
	return 0;
}

typedef int walk_fn(void *ctx, uint64_t record, const struct dl_header *h,
	struct dl_err *e);

static int walk_file(
	int fd, uint64_t size, walk_fn *f, void *ctx, struct dl_err *e)
{
	uint64_t at = 0, record = 0, data;
	int rc;

	do {
		struct dl_header h;

		rc = header_at(fd, size, at, &h, &data, e);
		if (rc)
			return record ? dl_at(e, "record %llu",
						(unsigned long long)record)
				      : rc;
		rc = f(ctx, record++, &h, e);
		at = data + h.data_size;
		dl_header_release(&h);
	} while (!rc && at < size);
	return rc;
}

struct walk {
	walk_fn *f;
	void *ctx;
};

static int walk_event(void *ctx, struct dl_reader *r,
	enum dl_reader_event event, struct dl_err *e)
{
	const struct walk *w = ctx;

	return event == DL_READER_HEADER
		       ? w->f(w->ctx, r->record, &r->header, e)
		       : 0;
}

int dl_records_walk(const char *path, walk_fn *f, void *ctx, struct dl_err *e)
{
	struct walk w = {f, ctx};
	uint64_t size;
	int fd, rc = open_input(path, &fd, e);

	if (rc)
		return rc;
	rc = seekable(fd, &size) ? walk_file(fd, size, f, ctx, e)
				 : read_pipe(fd, -1, walk_event, &w, e);
	close(fd);
	return rc ? dl_at(e, "%s", input_name(path)) : 0;
}
