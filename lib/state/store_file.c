#include "state/store_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

enum { PIECE = 1 << 18 };

static size_t packed_size(const struct dl_layout *l, uint32_t p)
{
	return l->fragment[p].elements * sizeof(float);
}

int dl_store_file_write(struct dl_output *o, const char *path,
	const struct dl_buf *head, const float *data, size_t n,
	struct dl_err *e)
{
	int rc = dl_output_open(o, path, e);

	if (rc)
		return rc;
	rc = dl_output_write(o, head->data, head->len, e);
	if (!rc)
		rc = dl_output_write(o, data, n, e);
	if (rc)
		dl_output_abort(o);
	return rc;
}

/* Exactly n bytes. */
static int read_exactly(int fd, void *buf, size_t n, struct dl_err *e)
{
	ssize_t got = dl_read_full(fd, buf, n);

	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "cannot read");
	if ((size_t)got < n)
		return dl_fail(e, DL_DATA, "ends too early");
	return 0;
}

/* Length and JSON into head; then it is known to describe fragment p. */
static int read_head(int fd, const struct dl_layout *l, uint32_t p,
	struct dl_buf *head, struct dl_err *e)
{
	const struct dl_limits limits = DL_LIMITS_FILE;
	struct dl_header h;
	uint64_t n;
	int rc;

	dl_buf_reserve(head, 8);
	rc = read_exactly(fd, head->data, 8, e);
	if (rc)
		return rc;
	n = dl_le64(head->data);
	if (n > limits.header)
		return dl_fail(e, DL_DATA, "header claims too many bytes");
	head->len = 8;
	dl_buf_reserve(head, n);
	rc = read_exactly(fd, head->data + 8, n, e);
	if (rc)
		return rc;
	head->len += n;
	rc = dl_header_parse(&h, head->data + 8, n, e);
	if (rc)
		return rc;
	rc = dl_layout_check_record(l, p, &h, e);
	dl_header_release(&h);
	return rc;
}

static int read_all(int fd, const struct dl_layout *l, uint32_t p, float *data,
	struct dl_hash *h, struct dl_err *e)
{
	struct dl_buf head = DL_BUF_INIT;
	char beyond;
	int rc = read_head(fd, l, p, &head, e);

	if (!rc)
		rc = read_exactly(fd, data, packed_size(l, p), e);
	if (!rc && dl_read_full(fd, &beyond, 1) != 0)
		rc = dl_fail(e, DL_DATA, "bytes after the record");
	if (!rc) {
		dl_hash_add(h, head.data, head.len);
		dl_hash_add(h, data, packed_size(l, p));
	}
	dl_buf_free(&head);
	return rc;
}

int dl_store_file_read(const char *path, const struct dl_layout *l, uint32_t p,
	float *data, char hash[DL_HASH_HEX], struct dl_err *e)
{
	char hex[DL_HASH_HEX];
	struct dl_hash h;
	int fd, rc = dl_open_read(path, &fd, e);

	if (rc)
		return rc;
	dl_hash_init(&h);
	rc = read_all(fd, l, p, data, &h, e);
	close(fd);
	dl_hash_hex(&h, hex);
	if (!rc && !*hash)
		strcpy(hash, hex);
	if (!rc && strcmp(hex, hash) != 0)
		rc = dl_fail(e, DL_DATA, "not the bytes that HEAD names");
	return rc ? dl_at(e, "%s", path) : 0;
}

static int hash_all(int fd, const atomic_int *stop, struct dl_hash *h,
	unsigned char *piece, struct dl_err *e)
{
	ssize_t n;

	while ((n = dl_read_full(fd, piece, PIECE)) > 0) {
		dl_hash_add(h, piece, (size_t)n);
		if (atomic_load(stop))
			return dl_fail(e, DL_TEMPFAIL, "stopped");
	}
	return n < 0 ? dl_fail_sys(e, DL_IOERR, "cannot read") : 0;
}

int dl_store_file_hash(const char *path, const atomic_int *stop,
	char hash[DL_HASH_HEX], struct dl_err *e)
{
	struct dl_hash h;
	unsigned char *piece;
	int fd, rc = dl_open_read(path, &fd, e);

	if (rc)
		return rc;
	piece = dl_alloc(PIECE);
	dl_hash_init(&h);
	rc = hash_all(fd, stop, &h, piece, e);
	dl_hash_hex(&h, hash);
	free(piece);
	close(fd);
	return rc ? dl_at(e, "%s", path) : 0;
}
