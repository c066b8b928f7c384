/* Making a store. */
#include "state/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "state/store_folder.h"

/* How many fragments have files that are open; together they cost the disk
 * little more than one does. */
enum { BATCH = 32 };

/* What is being made. */
struct making {
	const char *folder;
	struct dl_head *head;
	const struct dl_layout *layout;
	const float *const *values;
	const float *zero;		     /* the momentum of any */
	struct dl_output *global, *momentum; /* one a fragment */
	uint32_t safe; /* those before it are on the disk */
};

static int write_fragment(struct making *m, uint32_t p, struct dl_err *e)
{
	const struct dl_sync_saved_fragment *f = m->head->saved.fragment + p;
	const struct dl_store_label label = {
		m->head->run.name, p, f->version, f->step};
	const struct dl_store_content content = {
		.data = {m->values[p], m->zero},
		.out = {&m->global[p], &m->momentum[p]}};

	return dl_store_write_files(NULL, m->folder, &label, m->layout,
		&content, m->head->files + p, e);
}

static int wait_for_disk(struct making *m, uint32_t end, struct dl_err *e)
{
	size_t n = end - m->safe;
	int rc = dl_output_finish_all(m->global + m->safe, n, e);

	if (!rc)
		rc = dl_output_finish_all(m->momentum + m->safe, n, e);
	m->safe = end;
	return rc;
}

/* HEAD, which comes later, makes them count: that they have their names when
 * all of them are on the disk is soon enough. */
static int write_fragments(struct making *m, struct dl_err *e)
{
	uint32_t n = m->layout->fragments;
	int rc = 0;

	for (uint32_t p = 0; !rc && p < n; p++) {
		rc = write_fragment(m, p, e);
		if (!rc && p - m->safe == BATCH)
			rc = wait_for_disk(m, p, e);
	}
	if (!rc)
		rc = wait_for_disk(m, n, e);
	if (!rc)
		rc = dl_output_commit_all(m->global, n, e);
	if (!rc)
		rc = dl_output_commit_all(m->momentum, n, e);
	for (uint32_t p = 0; p < n; p++) {
		dl_output_abort(&m->global[p]);
		dl_output_abort(&m->momentum[p]);
	}
	return rc;
}

static struct dl_output *outputs_new(uint32_t n)
{
	struct dl_output *o = dl_alloc_array(n, sizeof *o);

	for (uint32_t p = 0; p < n; p++)
		o[p] = (struct dl_output)DL_OUTPUT_INIT;
	return o;
}

static int write_first(struct making *m, struct dl_err *e)
{
	const struct dl_layout *l = m->layout;
	struct dl_buf text = DL_BUF_INIT;
	uint64_t most = 1;
	float *zero;
	int rc;

	dl_layout_write(l, &text);
	rc = dl_store_write_layout(m->folder, &text, e);
	for (uint32_t p = 0; p < l->fragments; p++)
		if (l->fragment[p].elements > most)
			most = l->fragment[p].elements;
	m->zero = zero = dl_big_alloc(most * sizeof *zero);
	if (!rc)
		rc = write_fragments(m, e);
	dl_big_free(zero, most * sizeof *zero);
	if (!rc) {
		dl_buf_clear(&text);
		dl_head_write(&text, m->head);
		rc = dl_store_write_head(m->folder, &text, e);
	}
	dl_buf_free(&text);
	return rc;
}

int dl_store_create(const char *folder, const struct dl_store_run *run,
	const struct dl_layout *layout, const struct dl_sync_saved *saved,
	const float *const *values, struct dl_err *e)
{
	struct dl_head h = {.run = *run, .saved = *saved};
	struct making m = {folder, &h, layout, values, .safe = 0};
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
	m.global = outputs_new(layout->fragments);
	m.momentum = outputs_new(layout->fragments);
	rc = write_first(&m, e);
	free(m.global);
	free(m.momentum);
	free(h.files);
	close(lock);
	return rc;
}
