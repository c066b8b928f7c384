/* Whole files in one call. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input.h"

static int read_all(int fd, size_t limit, struct dl_buf *out, struct dl_err *e)
{
	struct dl_input in;
	ssize_t n;

	dl_input_init(&in, fd);
	do {
		dl_buf_reserve(out, 65536);
		n = dl_input_read(&in, out->data + out->len, 65536, e);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0 && out->len <= limit);
	dl_input_release(&in);
	if (n < 0)
		return e ? e->code : DL_IOERR;
	if (n)
		return dl_fail(e, DL_DATA, "larger than %zu bytes", limit);
	return 0;
}

int dl_read_file(
	const char *path, size_t limit, struct dl_buf *out, struct dl_err *e)
{
	int fd = STDIN_FILENO, rc = 0;

	dl_buf_clear(out);
	if (strcmp(path, "-"))
		rc = dl_open_read(path, &fd, e);
	if (rc)
		return rc;
	rc = read_all(fd, limit, out, e);
	if (fd != STDIN_FILENO)
		close(fd);
	return rc ? dl_at(e, "%s", path) : 0;
}

int dl_write_file(const char *path, const void *p, size_t n, struct dl_err *e)
{
	struct dl_output o;
	int rc = dl_output_open(&o, path, e);

	if (rc)
		return rc;
	rc = dl_output_write(&o, p, n, e);
	if (rc) {
		dl_output_abort(&o);
		return rc;
	}
	return dl_output_commit(&o, e);
}
