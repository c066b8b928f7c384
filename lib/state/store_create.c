/* Making a store. */
#include "state/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state/store_folder.h"

static int write_fragment(const char *folder, struct dl_head *h,
	const struct dl_layout *l, uint32_t p, const float *values,
	const float *momentum, struct dl_err *e)
{
	const struct dl_sync_saved_fragment *f = h->saved.fragment + p;
	const struct dl_store_label label = {
		h->run.name, p, f->version, f->step};
	const float *const data[DL_STORE_KINDS] = {values, momentum, NULL};

	return dl_store_write_files(
		NULL, folder, &label, l, data, h->files + p, e);
}

static int write_first(const char *folder, struct dl_head *h,
	const struct dl_layout *l, const float *const *values, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	uint64_t most = 1;
	float *zero;
	int rc;

	dl_layout_write(l, &text);
	rc = dl_store_write_layout(folder, &text, e);
	for (uint32_t p = 0; p < l->fragments; p++)
		if (l->fragment[p].elements > most)
			most = l->fragment[p].elements;
	zero = dl_big_alloc(most * sizeof *zero);
	for (uint32_t p = 0; !rc && p < l->fragments; p++)
		rc = write_fragment(folder, h, l, p, values[p], zero, e);
	dl_big_free(zero, most * sizeof *zero);
	if (!rc) {
		dl_buf_clear(&text);
		dl_head_write(&text, h);
		rc = dl_store_write_head(folder, &text, e);
	}
	dl_buf_free(&text);
	return rc;
}

int dl_store_create(const char *folder, const struct dl_store_run *run,
	const struct dl_layout *layout, const struct dl_sync_saved *saved,
	const float *const *values, struct dl_err *e)
{
	struct dl_head h = {.run = *run, .saved = *saved};
	int lock, rc;

	if (saved->fragments != layout->fragments)
		return dl_fail(e, DL_SOFTWARE,
			"%s: state of %u fragments, layout of %u", folder,
			saved->fragments, layout->fragments);
	rc = dl_store_begin(folder, &lock, e);
	if (rc)
		return rc;
	memcpy(h.layout, layout->hash, sizeof h.layout);
	h.files = dl_alloc_array(layout->fragments, sizeof *h.files);
	rc = write_first(folder, &h, layout, values, e);
	free(h.files);
	close(lock);
	return rc;
}
