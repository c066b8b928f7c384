#include "link/spool_values.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "link/message.h"
#include "link/spool_file.h"

/* What is to be read. */
struct file {
	const struct dl_layout *layout;
	uint32_t p;
	const struct dl_spool_global *what;
	float *values;
};

static int read_exactly(
	int fd, void *to, size_t n, struct dl_hash *h, struct dl_err *e)
{
	ssize_t got = dl_read_full(fd, to, n);

	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "cannot read");
	if ((size_t)got < n)
		return dl_fail(e, DL_DATA, "ends too early");
	dl_hash_add(h, to, n);
	return 0;
}

/* It is that version of that fragment, in f32. */
static int check(const struct file *f, const struct dl_header *h,
	uint64_t header_bytes, struct dl_err *e)
{
	struct dl_message m = {0};
	int code = dl_message_unpack(&m, h, NULL, e);

	if (code)
		return code;
	if (m.kind != DL_MSG_GLOBAL || m.fragment != f->p || m.base.epoch ||
		dl_version_cmp(m.version, f->what->version) != 0)
		code = dl_fail(e, DL_DATA, "not what its name says");
	else
		code = dl_layout_check_record(f->layout, f->p, h, e);
	if (!code && header_bytes + h->data_size != f->what->bytes)
		code = dl_fail(e, DL_DATA, "has another size");
	dl_message_release(&m);
	return code;
}

/* The length and the JSON, which fit in the file. */
static int read_header(
	const struct file *f, int fd, struct dl_hash *hash, struct dl_err *e)
{
	static const struct dl_limits limits = DL_LIMITS_FILE;
	unsigned char length[8];
	struct dl_buf json = DL_BUF_INIT;
	struct dl_header h;
	uint64_t n;
	int code = read_exactly(fd, length, sizeof length, hash, e);

	if (code)
		return code;
	n = dl_le64(length);
	if (n > limits.header || n > f->what->bytes - sizeof length)
		return dl_fail(e, DL_DATA, "header claims too many bytes");
	dl_buf_reserve(&json, n);
	code = read_exactly(fd, json.data, n, hash, e);
	if (!code)
		code = dl_header_parse(&h, json.data, n, e);
	if (!code) {
		code = check(f, &h, n + sizeof length, e);
		dl_header_release(&h);
	}
	dl_buf_free(&json);
	return code;
}

static int read_values(const struct file *f, int fd, struct dl_err *e)
{
	char hex[DL_HASH_HEX];
	struct dl_hash hash;
	int code;

	dl_hash_init(&hash);
	code = read_header(f, fd, &hash, e);
	if (!code)
		code = read_exactly(fd, f->values,
			f->layout->fragment[f->p].elements * sizeof(float),
			&hash, e);
	dl_hash_hex(&hash, hex);
	if (!code && strcmp(hex, f->what->hash) != 0)
		code = dl_fail(e, DL_DATA, "not the bytes of global/latest");
	return code;
}

int dl_spool_read_values(int spool, const struct dl_layout *l, uint32_t p,
	const struct dl_spool_global *what, float *values, struct dl_err *e)
{
	const struct file f = {l, p, what, values};
	char path[DL_SPOOL_NAME + 8] = "global/";
	struct stat st;
	int fd, code;

	dl_spool_version_name(path + strlen(path), p, what->version);
	code = dl_spool_open_locked(spool, path, &fd, &st, e);
	if (code)
		return code;
	if ((uint64_t)st.st_size != what->bytes)
		code = dl_fail(e, DL_DATA, "has another size");
	else
		code = read_values(&f, fd, e);
	close(fd);
	return code ? dl_at(e, "%s", path) : 0;
}
