#include "tensor/emit.h"

#include <stdlib.h>
#include <string.h>

static int emit_tensor(struct dl_output *o, size_t handle, uint64_t size,
	uint64_t at, unsigned char *block, dl_emit_fn *fill, void *ctx,
	struct dl_err *e)
{
	for (; at < size; at += DL_EMIT_BLOCK) {
		size_t n = size - at < DL_EMIT_BLOCK ? (size_t)(size - at)
						     : DL_EMIT_BLOCK;
		int rc = fill(ctx, handle, at, block, n, e);

		if (!rc)
			rc = dl_output_write(o, block, n, e);
		if (rc)
			return rc;
	}
	return 0;
}

size_t dl_emit_block(const uint64_t *size, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		if (size[i] > most)
			most = size[i];
	return most < DL_EMIT_BLOCK ? (size_t)most : DL_EMIT_BLOCK;
}

static uint64_t copy_tensor(struct dl_output *o, size_t handle, uint64_t size,
	dl_emit_whence *whence, void *ctx)
{
	uint64_t at;
	int fd = whence ? whence(ctx, handle, &at) : -1;

	return fd < 0 ? 0 : dl_output_copy(o, fd, at, size);
}

int dl_emit(struct dl_output *o, struct dl_writer *w, const uint64_t *size,
	dl_emit_fn *fill, void *ctx, struct dl_err *e)
{
	return dl_emit_from(o, w, size, fill, NULL, ctx, e);
}

int dl_emit_from(struct dl_output *o, struct dl_writer *w, const uint64_t *size,
	dl_emit_fn *fill, dl_emit_whence *whence, void *ctx, struct dl_err *e)
{
	struct dl_buf header = DL_BUF_INIT;
	size_t n = w->tensors, *order = dl_alloc_array(n, sizeof *order);
	unsigned char *block = dl_alloc(dl_emit_block(size, n));
	int rc;

	dl_writer_finish(w, &header, order);
	rc = dl_output_write(o, header.data, header.len, e);
	for (size_t i = 0; !rc && i < n; i++) {
		uint64_t bytes = size[order[i]];
		uint64_t done = copy_tensor(o, order[i], bytes, whence, ctx);

		rc = emit_tensor(o, order[i], bytes, done, block, fill, ctx, e);
	}
	free(block);
	free(order);
	dl_buf_free(&header);
	dl_writer_release(w);
	return rc;
}

size_t dl_emit_meta(struct dl_writer *w, const struct dl_header *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->metas; i++) {
		const struct dl_string *m = h->meta[i];

		if (strlen(m[0].s) != m[0].n || !strncmp(m[0].s, "dl.", 3))
			continue;
		dl_writer_meta_n(w, m[0].s, m[1].s, m[1].n);
		n++;
	}
	return n;
}
