/*
 * Any bytes as a file that may be compressed: the same whole and in pieces, and
 * never more of it than the limit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input.h"
#include "fuzz.h"

enum { LIMIT = 1 << 16 };

/* A path at which the n bytes are, until the next call. */
static const char *as_file(const void *data, size_t n)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, n, 0) != (ssize_t)n)
		abort();
	return path;
}

/* Up to LIMIT bytes in pieces; 0, or the refusal. */
static int read_pieces(const char *path, size_t piece, struct dl_buf *out)
{
	struct dl_err e = {0};
	struct dl_input in;
	ssize_t got;
	int fd;

	if (dl_open_read(path, &fd, NULL))
		abort();
	dl_input_init(&in, fd);
	do {
		dl_buf_reserve(out, piece);
		got = dl_input_read(&in, out->data + out->len, piece, &e);
		out->len += got > 0 ? (size_t)got : 0;
	} while (got > 0 && out->len <= LIMIT);
	if (got < 0 && (e.code != DL_DATA || !e.text[0]))
		abort();
	dl_input_release(&in);
	close(fd);
	return got < 0 ? e.code : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_buf whole = DL_BUF_INIT, pieces = DL_BUF_INIT;
	struct dl_err e = {0};
	const char *path = as_file(data, n);
	int code = dl_read_file(path, LIMIT, &whole, &e);
	int other = read_pieces(path, 1009, &pieces);

	if (code && (code != DL_DATA || !e.text[0]))
		abort();
	if ((!code && whole.len > LIMIT) ||
		!code != (!other && pieces.len <= LIMIT))
		abort();
	if (!code && (whole.len != pieces.len ||
			     (whole.len && memcmp(whole.data, pieces.data,
						   whole.len) != 0)))
		abort();
	dl_buf_free(&whole);
	dl_buf_free(&pieces);
	return 0;
}
