#include "cmd/sync/update.h"

#include <string.h>

#include "merge/merge.h"

void update_begin(struct update_work *w, struct shelf *shelf,
	const struct dl_layout *layout, uint32_t p)
{
	w->data = shared_new(shelf, dl_coded_bytes(layout, p, w->quant));
	dl_coded_init(&w->coded, layout, p, w->quant, w->data->data);
	atomic_init(&w->lost, 0);
}

/* Whole blocks of codes, of which all that is read and written stays in the
 * nearest cache. Products with 1 and -1 are exact. */
enum { STRIP = DL_QUANT_BLOCK_MAX };
static void update_strip(
	struct update_work *w, size_t offset, size_t n, const float *next)
{
	const float *before = w->before + offset;
	float *values = w->values + offset, *error = w->error + offset;
	float step[STRIP], sent[STRIP];

	memcpy(step, next, n * sizeof *step);
	dl_merge_add(step, -1, before, n);
	dl_merge_add(error, 1, step, n);
	dl_coded_put(&w->coded, w->quant, offset, n, error, w->data->data);
	dl_coded_read(&w->coded, offset, n, sent);
	if (dl_find_nonfinite(sent, n) < n) {
		atomic_store(&w->lost, 1);
		memcpy(sent, error, n * sizeof *sent);
	}
	dl_merge_add(error, -1, sent, n);
	if (values != before)
		memcpy(values, before, n * sizeof *values);
	dl_merge_add(values, 1, sent, n);
}

void update_block(void *work, size_t offset, size_t n, const float *next)
{
	for (size_t at = 0; at < n; at += STRIP)
		update_strip(work, offset + at, n - at < STRIP ? n - at : STRIP,
			next + at);
}

struct shared *update_end(struct update_work *w)
{
	struct shared *data = w->data;

	dl_coded_release(&w->coded);
	if (!atomic_load(&w->lost))
		return data;
	shared_retire(data);
	return NULL;
}

void update_settle(float *values, const float *error, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] += error[i];
}
