#include "cmd/learn/weights.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/learn/base.h"
#include "cmd/learn/fragment.h"
#include "tensor/packed.h"

void weights_init(struct weights *w, const struct dl_layout *layout,
	struct dl_scratch *scratch, enum dl_codec codec)
{
	uint32_t n = layout->fragments;

	*w = (struct weights){.layout = layout,
		.scratch = scratch,
		.quant = {.codec = codec, .block = DL_QUANT_BLOCK}};
	w->anchor = dl_alloc_array(n, sizeof *w->anchor);
	w->came = dl_alloc_array(n, sizeof *w->came);
	shelf_init(&w->shelf, layout);
}

void weights_release(struct weights *w)
{
	for (uint32_t p = 0; w->anchor && p < w->layout->fragments; p++) {
		shelf_give(&w->shelf, p, w->anchor[p]);
		shelf_give(&w->shelf, p, w->came[p].values);
	}
	while (w->push) {
		struct push *next = w->push->next;

		shelf_give_bytes(&w->shelf, w->push->data, w->push->bytes);
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
	*came = (struct came){values, version, CAME_UNWRITTEN};
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
	int code = 0;

	for (uint32_t p = 0; p < w->layout->fragments && !code; p++) {
		float **anchor = &w->anchor[p];

		if (!*anchor)
			*anchor = shelf_take(&w->shelf, p);
		code = fragment_read(w->layout, p, *anchor, path, e);
	}
	return code;
}

int weights_write_model(struct weights *w, const char *path, struct dl_err *e)
{
	return dl_packed_write(w->layout, (const float *const *)w->anchor,
		DL_PACKED_F32, &(struct dl_save){.path = path}, e);
}

int weights_write_anchor(
	struct weights *w, uint32_t p, const char *path, struct dl_err *e)
{
	w->came[p].file = CAME_UNWRITTEN;
	return fragment_write(w->layout, p, w->anchor[p], NULL, path, e);
}

int weights_has(const struct weights *w, uint32_t p, struct dl_version version)
{
	return w->came[p].values &&
	       dl_version_cmp(w->came[p].version, version) == 0;
}

static int write_came(struct weights *w, uint32_t p, enum came_file as,
	const char *path, struct dl_err *e)
{
	struct came *came = &w->came[p];
	int code;

	if (came->file == as)
		return 0;
	came->file = CAME_UNWRITTEN;
	code = fragment_write(w->layout, p, came->values,
		as == CAME_DELTA ? w->anchor[p] : NULL, path, e);
	if (!code)
		came->file = as;
	return code;
}

static enum came_file file_for(enum dl_apply apply)
{
	return apply == DL_APPLY_CARRY ? CAME_DELTA : CAME_VALUES;
}

int weights_can_prepare(const struct weights *w, uint32_t p)
{
	return w->came[p].values && w->anchor[p] &&
	       w->came[p].file == CAME_UNWRITTEN;
}

int weights_prepare(
	struct weights *w, uint32_t p, const char *path, struct dl_err *e)
{
	return write_came(w, p, file_for(w->apply), path, e);
}

int weights_write_apply(struct weights *w, const struct dl_learn_action *a,
	const char *path, struct dl_err *e)
{
	uint32_t p = a->fragment;
	struct came *came = &w->came[p];
	float *anchor = w->anchor[p], alpha = (float)a->alpha;
	int code;

	code = write_came(w, p, file_for(a->apply), path, e);
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
