#include "base/input.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <zstd.h>

enum { CHUNK = 1 << 17 };

int dl_input_is_zstd(const void *p, size_t n)
{
	uint32_t magic = n < DL_ZSTD_MAGIC ? 0 : dl_le32(p);

	return magic == ZSTD_MAGICNUMBER ||
	       (magic & ZSTD_MAGIC_SKIPPABLE_MASK) ==
		       ZSTD_MAGIC_SKIPPABLE_START;
}

void dl_input_init(struct dl_input *in, int fd)
{
	memset(in, 0, sizeof *in);
	in->fd = fd;
}

void dl_input_release(struct dl_input *in)
{
	ZSTD_freeDCtx(in->zstd);
	dl_buf_free(&in->raw);
	memset(in, 0, sizeof *in);
}

static ssize_t read_fd(
	struct dl_input *in, void *buf, size_t n, struct dl_err *e)
{
	ssize_t got;

	do
		got = read(in->fd, buf, n);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		dl_fail_sys(e, DL_IOERR, "cannot read");
	return got;
}

static ssize_t fill(struct dl_input *in, struct dl_err *e)
{
	ssize_t got;

	dl_buf_reserve(&in->raw, CHUNK);
	got = read_fd(in, in->raw.data + in->raw.len, CHUNK, e);
	if (got > 0)
		in->raw.len += (size_t)got;
	return got;
}

static int look(struct dl_input *in, struct dl_err *e)
{
	ssize_t got = 1;

	while (got > 0 && in->raw.len < DL_ZSTD_MAGIC)
		got = fill(in, e);
	if (got < 0)
		return -1;
	in->known = 1;
	if (dl_input_is_zstd(in->raw.data, in->raw.len)) {
		in->zstd = ZSTD_createDCtx();
		if (!in->zstd) {
			dl_fail(e, DL_OSERR, "out of memory");
			return -1;
		}
	}
	return 0;
}

static ssize_t read_zstd(
	struct dl_input *in, void *buf, size_t n, struct dl_err *e)
{
	ZSTD_outBuffer out = {buf, n, 0};

	while (!out.pos) {
		ZSTD_inBuffer raw = {in->raw.data, in->raw.len, in->at};
		size_t rc = ZSTD_decompressStream(in->zstd, &out, &raw);

		if (ZSTD_isError(rc)) {
			dl_fail(e, DL_DATA, "zstd: %s", ZSTD_getErrorName(rc));
			return -1;
		}
		/* Nothing new said on an input at its end: frame boundary. */
		if (raw.pos > in->at || out.pos)
			in->inside = rc != 0;
		in->at = raw.pos;
		if (out.pos || in->at < in->raw.len)
			continue;
		in->at = in->raw.len = 0;
		switch (fill(in, e)) {
		case -1:
			return -1;
		case 0:
			if (!in->inside)
				return 0;
			dl_fail(e, DL_DATA, "zstd: ends inside a frame");
			return -1;
		}
	}
	return (ssize_t)out.pos;
}

ssize_t dl_input_read(
	struct dl_input *in, void *buf, size_t n, struct dl_err *e)
{
	size_t left;

	if (!in->known && look(in, e))
		return -1;
	if (in->zstd)
		return read_zstd(in, buf, n, e);
	left = in->raw.len - in->at;
	if (!left)
		return read_fd(in, buf, n, e);
	if (left > n)
		left = n;
	memcpy(buf, in->raw.data + in->at, left);
	in->at += left;
	return (ssize_t)left;
}
