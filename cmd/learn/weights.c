#include "cmd/learn/weights.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/learn/base.h"
#include "tensor/packed.h"

enum { PIECE = 16384 }; /* elements made at a time */

void weights_init(struct weights *w, const struct dl_layout *layout,
	struct dl_scratch *scratch, enum dl_codec codec)
{
	uint32_t n = layout->fragments;

	*w = (struct weights){.layout = layout,
		.scratch = scratch,
		.quant = {.codec = codec, .block = DL_QUANT_BLOCK}};
	w->anchor = dl_alloc_array(n, sizeof *w->anchor);
	w->came = dl_alloc_array(n, sizeof *w->came);
	shelf_init(&w->shelf, layout, 3);
}

void weights_release(struct weights *w)
{
	for (uint32_t p = 0; w->anchor && p < w->layout->fragments; p++) {
		shelf_give(&w->shelf, p, w->anchor[p]);
		shelf_give(&w->shelf, p, w->came[p].values);
	}
	while (w->push) {
		struct push *next = w->push->next;

		shelf_give_bytes(&w->shelf, w->push->what.fragment,
			w->push->data, w->push->bytes);
		free(w->push);
		w->push = next;
	}
	weights_expect_updates(w, 0);
	free(w->anchor);
	free(w->came);
	shelf_release(&w->shelf);
	*w = (struct weights){0};
}

void weights_came(
	struct weights *w, uint32_t p, struct dl_version version, float *values)
{
	struct came *came = &w->came[p];

	base_came(w, p, version, values);
	if (came->values && dl_version_cmp(version, came->version) < 0) {
		shelf_give(&w->shelf, p, values);
		return;
	}
	shelf_give(&w->shelf, p, came->values);
	*came = (struct came){values, version};
}

/* The values of the version that the core has just taken become the anchor.
 * Others that wait came too late and are of no use. */
static void adopt(struct weights *w, uint32_t p, struct dl_version version)
{
	struct came *came = &w->came[p];

	if (!came->values)
		return;
	if (dl_version_cmp(came->version, version) == 0) {
		shelf_give(&w->shelf, p, w->anchor[p]);
		w->anchor[p] = came->values;
	} else {
		shelf_give(&w->shelf, p, came->values);
	}
	came->values = NULL;
}

void weights_adopt(struct weights *w, const struct dl_learn *core)
{
	for (uint32_t p = 0; p < w->layout->fragments; p++)
		adopt(w, p, dl_learn_version(core, p));
}

int weights_read_model(struct weights *w, const char *path, struct dl_err *e)
{
	struct dl_model model;
	int code = dl_model_open(&model, path, e);

	if (code)
		return code;
	for (size_t i = 0; i < w->layout->tensors && !code; i++) {
		const struct dl_layout_tensor *t = &w->layout->tensor[i];
		float **anchor = &w->anchor[t->fragment];

		if (!*anchor)
			*anchor = shelf_take(&w->shelf, t->fragment);
		if (t->rule != DL_ALIAS)
			code = dl_model_read_f32(&model,
				dl_model_find(&model, t->name.s, t->name.n),
				*anchor + t->offset, e);
	}
	dl_model_close(&model);
	return code;
}

int weights_write_model(struct weights *w, const char *path, struct dl_err *e)
{
	return dl_packed_write(w->layout, (const float *const *)w->anchor,
		DL_PACKED_F32, &(struct dl_save){.path = path}, e);
}

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

/* A record of fragment p, in place: the trainer reads it before the next. */
static int write_fragment(struct weights *w, uint32_t p, const float *values,
	const float *less, const char *path, struct dl_err *e)
{
	struct dl_writer writer = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;
	size_t n = w->layout->fragment[p].elements;
	int bad, fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	dl_writer_meta(&writer, "dl.format", "1");
	dl_writer_meta(&writer, "dl.kind", less ? "delta" : "params");
	dl_writer_meta_u64(&writer, "dl.fragment", p);
	dl_layout_record(w->layout, p, &writer);
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

int weights_write_anchor(
	struct weights *w, uint32_t p, const char *path, struct dl_err *e)
{
	return write_fragment(w, p, w->anchor[p], NULL, path, e);
}

int weights_has(const struct weights *w, uint32_t p, struct dl_version version)
{
	return w->came[p].values &&
	       dl_version_cmp(w->came[p].version, version) == 0;
}

int weights_write_apply(struct weights *w, const struct dl_learn_action *a,
	const char *path, struct dl_err *e)
{
	uint32_t p = a->fragment;
	struct came *came = &w->came[p];
	float *anchor = w->anchor[p], alpha = (float)a->alpha;
	int code;

	code = write_fragment(w, p, came->values,
		a->apply == DL_APPLY_CARRY ? anchor : NULL, path, e);
	if (code)
		return code;
	if (a->apply == DL_APPLY_BLEND) {
		size_t n = w->layout->fragment[p].elements;

		for (size_t i = 0; i < n; i++)
			came->values[i] = alpha * anchor[i] +
					  (1 - alpha) * came->values[i];
	}
	adopt(w, p, a->version);
	return 0;
}
