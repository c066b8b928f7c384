#include "cmd/learn/fragment.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "tensor/model.h"

enum { PIECE = 16384 }; /* elements made at a time */

/* values - anchor, piece by piece, to fd. */
static int write_difference(
	int fd, const float *values, const float *anchor, size_t n)
{
	float piece[PIECE];

	for (size_t at = 0; at < n; at += PIECE) {
		size_t k = n - at < PIECE ? n - at : PIECE;

		for (size_t i = 0; i < k; i++)
			piece[i] = values[at + i] - anchor[at + i];
		if (dl_write_full(fd, piece, k * sizeof *piece))
			return -1;
	}
	return 0;
}

int fragment_write(const struct dl_layout *l, uint32_t p, const float *values,
	const float *less, const char *path, struct dl_err *e)
{
	struct dl_writer writer = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;
	size_t n = l->fragment[p].elements;
	int bad, fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	dl_writer_meta(&writer, "dl.format", "1");
	dl_writer_meta(&writer, "dl.kind", less ? "delta" : "params");
	dl_writer_meta_u64(&writer, "dl.fragment", p);
	dl_layout_record(l, p, &writer);
	dl_writer_finish(&writer, &head, NULL);
	dl_writer_release(&writer);
	bad = dl_write_full(fd, head.data, head.len) ||
	      (less ? write_difference(fd, values, less, n)
		    : dl_write_full(fd, values, n * sizeof *values)) ||
	      ftruncate(fd, (off_t)(head.len + n * sizeof *values));
	if (bad)
		dl_fail_sys(e, DL_IOERR, "%s", path);
	dl_buf_free(&head);
	close(fd);
	return bad ? DL_IOERR : 0;
}

int fragment_read(const struct dl_layout *l, uint32_t p, float *out,
	const char *path, struct dl_err *e)
{
	const struct dl_layout_fragment *f = &l->fragment[p];
	struct dl_model m;
	int code = dl_model_open(&m, path, e);

	if (code)
		return code;
	for (size_t i = f->first; !code && i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		const struct dl_model_tensor *found;
		char name[80];

		if (t->rule == DL_ALIAS)
			continue;
		found = dl_model_find(&m, t->name.s, t->name.n);
		if (!found || !dl_layout_same_shape(t, &found->info))
			code = dl_fail(e, DL_DATA, "%s: tensor \"%s\" %s", path,
				dl_scrub(name, sizeof name, t->name.s,
					t->name.n),
				found ? "has another shape" : "is missing");
		else
			code = dl_model_read_f32(&m, found, out + t->offset, e);
	}
	dl_model_close(&m);
	return code;
}
