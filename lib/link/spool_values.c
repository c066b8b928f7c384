#include "link/spool_values.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "link/message.h"
#include "link/spool_file.h"

/* A record of kind global, as a row of latest describes it. */
struct file {
	uint32_t p;
	struct dl_version version, base;
	uint64_t bytes;
	const char *sum; /* its hash */
	int fd;
	struct dl_hash hash; /* of what has been read */
};

static int read_exactly(struct file *f, void *to, size_t n, struct dl_err *e)
{
	ssize_t got = dl_read_full(f->fd, to, n);

	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "cannot read");
	if ((size_t)got < n)
		return dl_fail(e, DL_DATA, "ends too early");
	dl_hash_add(&f->hash, to, n);
	return 0;
}

static int check(const struct file *f, const struct dl_header *h,
	uint64_t header_bytes, struct dl_err *e)
{
	struct dl_message m = {0};
	int code = dl_message_unpack(&m, h, NULL, e);

	if (code)
		return code;
	if (m.kind != DL_MSG_GLOBAL || m.fragment != f->p ||
		dl_version_cmp(m.base, f->base) != 0 ||
		dl_version_cmp(m.version, f->version) != 0)
		code = dl_fail(e, DL_DATA, "not what its name says");
	else if (header_bytes + h->data_size != f->bytes)
		code = dl_fail(e, DL_DATA, "has another size");
	dl_message_release(&m);
	return code;
}

/* The length and the JSON, which fit in the file. h is the caller's to release
 * after success. */
static int read_header(struct file *f, struct dl_header *h, struct dl_err *e)
{
	static const struct dl_limits limits = DL_LIMITS_FILE;
	unsigned char length[8];
	struct dl_buf json = DL_BUF_INIT;
	uint64_t n;
	int code = read_exactly(f, length, sizeof length, e);

	if (code)
		return code;
	n = dl_le64(length);
	if (n > limits.header || n > f->bytes - sizeof length)
		return dl_fail(e, DL_DATA, "header claims too many bytes");
	dl_buf_reserve(&json, n);
	code = read_exactly(f, json.data, n, e);
	if (!code)
		code = dl_header_parse(h, json.data, n, e);
	if (!code) {
		code = check(f, h, n + sizeof length, e);
		if (code)
			dl_header_release(h);
	}
	dl_buf_free(&json);
	return code;
}

/* The rest, after which the hash must be right. */
static int read_data(struct file *f, void *to, size_t n, struct dl_err *e)
{
	char hex[DL_HASH_HEX];
	int code = read_exactly(f, to, n, e);

	if (code)
		return code;
	dl_hash_hex(&f->hash, hex);
	return strcmp(hex, f->sum)
		       ? dl_fail(e, DL_DATA, "not the bytes of global/latest")
		       : 0;
}

enum { PATH_SIZE = DL_SPOOL_NAME + 8 };

/* Opens what kind, "global/" or "update/", has of f's version; path gets its
 * name. After success f->fd is open and h the caller's to release. */
static int open_record(struct file *f, int spool, const char *kind,
	char path[PATH_SIZE], struct dl_header *h, struct dl_err *e)
{
	struct stat st;
	int code;

	strcpy(path, kind);
	dl_spool_version_name(path + strlen(path), f->p, f->version);
	code = dl_spool_open_locked(spool, path, &f->fd, &st, e);
	if (code)
		return code;
	dl_hash_init(&f->hash);
	if ((uint64_t)st.st_size != f->bytes)
		code = dl_fail(e, DL_DATA, "has another size");
	else
		code = read_header(f, h, e);
	if (!code)
		return 0;
	close(f->fd);
	return dl_at(e, "%s", path);
}

int dl_spool_read_values(int spool, const struct dl_layout *l, uint32_t p,
	const struct dl_spool_global *what, float *values, struct dl_err *e)
{
	struct file f = {.p = p,
		.version = what->version,
		.bytes = what->bytes,
		.sum = what->hash};
	char path[PATH_SIZE];
	struct dl_header h;
	int code = open_record(&f, spool, "global/", path, &h, e);

	if (code)
		return code;
	code = dl_layout_check_record(l, p, &h, e);
	if (!code)
		code = read_data(&f, values, h.data_size, e);
	dl_header_release(&h);
	close(f.fd);
	return code ? dl_at(e, "%s", path) : 0;
}

int dl_spool_read_update(int spool, const struct dl_layout *l, uint32_t p,
	const struct dl_spool_global *what, struct dl_buf *data,
	struct dl_coded *update, struct dl_err *e)
{
	struct file f = {.p = p,
		.version = what->version,
		.base = what->base,
		.bytes = what->update_bytes,
		.sum = what->update};
	char path[PATH_SIZE];
	struct dl_header h;
	int code;

	*update = (struct dl_coded){0};
	code = open_record(&f, spool, "update/", path, &h, e);
	if (code)
		return code;
	code = dl_coded_open(update, l, p, &h, NULL, e);
	dl_buf_clear(data);
	if (!code) {
		dl_buf_reserve_exact(data, h.data_size);
		code = read_data(&f, data->data, h.data_size, e);
	}
	update->data = data->data;
	dl_header_release(&h);
	close(f.fd);
	return code ? dl_at(e, "%s", path) : 0;
}
