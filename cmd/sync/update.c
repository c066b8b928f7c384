#include "cmd/sync/update.h"

#include <string.h>

#include "merge/merge.h"

static struct shared *encode(
	const struct update_work *w, uint32_t p, const float *x)
{
	struct shared *data =
		shared_new(w->shelf, p, dl_coded_bytes(w->layout, p, w->quant));
	struct dl_coded coded;

	dl_coded_encode(w->pool, w->layout, p, w->quant, x, data->data);
	dl_coded_init(&coded, w->layout, p, w->quant, data->data);
	dl_coded_decode(w->pool, &coded, w->scratch);
	dl_coded_release(&coded);
	return data;
}

struct shared *update_make(const struct update_work *w, uint32_t p,
	float *values, float *next, float *error)
{
	size_t n = w->layout->fragment[p].elements;
	struct shared *data;

	for (size_t i = 0; i < n; i++)
		next[i] = (next[i] - values[i]) + error[i];
	data = encode(w, p, next);
	if (dl_find_nonfinite(w->scratch, n) < n) {
		shared_retire(data);
		update_settle(values, next, n);
		memset(error, 0, n * sizeof *error);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		error[i] = next[i] - w->scratch[i];
		values[i] += w->scratch[i];
	}
	return data;
}

void update_settle(float *values, const float *error, size_t n)
{
	for (size_t i = 0; i < n; i++)
		values[i] += error[i];
}
