#include "cmd/sync/globals.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/segments.h"
#include "tensor/packed.h"

static struct shared *new_values(struct globals *g, uint32_t p)
{
	return shared_new(&g->shelf, shelf_bytes(&g->shelf, p));
}

static void allocate(struct globals *g, const struct sync_options *o)
{
	const struct dl_layout *layout = dl_store_layout(g->store);
	uint32_t n = layout->fragments;

	g->layout = layout;
	g->outer = o->outer;
	g->quant =
		(struct dl_quant){.codec = o->global, .block = DL_QUANT_BLOCK};
	g->pool = dl_pool_new(o->threads);
	g->segment = dl_alloc_array(n, sizeof *g->segment);
	g->segments = dl_alloc_array(n, sizeof *g->segments);
	g->loaded = dl_alloc(n);
	g->values = dl_alloc_array(n, sizeof *g->values);
	g->momentum = dl_alloc_array(n, sizeof *g->momentum);
	g->error = dl_alloc_array(n, sizeof *g->error);
	g->update = dl_alloc_array(n, sizeof *g->update);
	g->alike = dl_alloc_array(n, sizeof *g->alike);
	g->held = dl_alloc_array(n, sizeof *g->held);
	shelf_init(&g->shelf, layout);
	pushes_init(&g->pushes, g->pool, &g->shelf, layout, g->segment,
		g->segments);
	for (uint32_t p = 0; p < n; p++) {
		g->segments[p] =
			segments_cut(layout, p, o->rule, &g->segment[p]);
		g->values[p] = new_values(g, p);
		g->momentum[p] = shelf_take(&g->shelf, p);
		g->alike[p] = (struct dl_alike)DL_ALIKE_UNKNOWN;
	}
}

static void drop_error(struct globals *g, uint32_t p)
{
	shelf_give(&g->shelf, p, g->error[p]);
	g->error[p] = NULL;
}

int globals_load(struct globals *g, uint32_t p, struct dl_err *e)
{
	int code;

	if (g->loaded[p])
		return 0;
	code = dl_store_load(
		g->store, p, g->values[p]->data, g->momentum[p], e);
	if (code)
		return code;
	g->error[p] = shelf_take(&g->shelf, p);
	code = dl_store_load_error(g->store, p, g->error[p], e);
	if (code == DL_NO)
		drop_error(g, p);
	if (code && code != DL_NO)
		return code;
	g->loaded[p] = 1;
	return 0;
}

int globals_load_all(struct globals *g, struct dl_err *e)
{
	int code = 0;

	for (uint32_t p = 0; !code && p < g->layout->fragments; p++)
		code = globals_load(g, p, e);
	return code;
}

int globals_begin(
	struct globals *g, const struct sync_options *o, struct dl_err *e)
{
	int code = dl_store_open(&g->store, o->store, DL_STORE_OWN, e);

	if (code)
		return code;
	allocate(g, o);
	code = dl_coded_check(g->layout, &g->quant, e);
	if (code)
		globals_close(g);
	return code;
}

int globals_open(
	struct globals *g, const struct sync_options *o, struct dl_err *e)
{
	int code = globals_begin(g, o, e);

	if (code)
		return code;
	code = globals_load_all(g, e);
	if (code)
		globals_close(g);
	return code;
}

void globals_close(struct globals *g)
{
	pushes_release(&g->pushes);
	for (uint32_t p = 0; g->values && p < g->layout->fragments; p++) {
		shared_retire(g->values[p]);
		shared_retire(g->update[p].data);
		shelf_give(&g->shelf, p, g->momentum[p]);
		drop_error(g, p);
		free(g->segment[p]);
	}
	free(g->segment);
	free(g->segments);
	free(g->loaded);
	free(g->values);
	free(g->momentum);
	free(g->error);
	free(g->update);
	free(g->alike);
	free(g->held);
	shelf_release(&g->shelf);
	dl_pool_free(g->pool);
	dl_store_close(g->store);
	*g = (struct globals){0};
}

const float *globals_values(const struct globals *g, uint32_t p)
{
	return g->values[p]->data;
}

/* Where the next values of p go: those that somebody reads stay as they are. */
static struct shared *next_values(struct globals *g, uint32_t p)
{
	return g->values[p]->readers ? new_values(g, p) : g->values[p];
}

/* They were made, or not. */
static void keep_values(
	struct globals *g, uint32_t p, struct shared *next, int made)
{
	struct shared *now = g->values[p];

	if (next == now)
		return;
	shared_retire(made ? now : next);
	if (made)
		g->values[p] = next;
}

void globals_hold(struct globals *g, uint32_t p, struct held *h)
{
	h->values = shared_read(g->values[p]);
	h->files = (struct dl_store_write){.p = p,
		.content = {.data = {h->values->data, g->momentum[p],
				    g->error[p]}}};
	h->left = 0;
	g->held[p] = h;
}

void globals_let_go(struct globals *g, struct held *h)
{
	uint32_t p = h->files.p;

	shared_done(h->values);
	if (!h->left) {
		g->held[p] = NULL;
		return;
	}
	shelf_give(&g->shelf, p,
		(float *)h->files.content.data[DL_STORE_MOMENTUM]);
	shelf_give(
		&g->shelf, p, (float *)h->files.content.data[DL_STORE_ERROR]);
}

static float *copy(struct globals *g, uint32_t p, const float *x)
{
	return x ? memcpy(shelf_take(&g->shelf, p), x,
			   shelf_bytes(&g->shelf, p))
		 : NULL;
}

/* Momentum and error are changed in place, unless somebody holds them. */
static void leave_held(struct globals *g, uint32_t p)
{
	if (!g->held[p])
		return;
	g->held[p]->left = 1;
	g->held[p] = NULL;
	g->momentum[p] = copy(g, p, g->momentum[p]);
	g->error[p] = copy(g, p, g->error[p]);
}

static int merge(struct globals *g, const struct dl_sync_action *a,
	const struct dl_step *step, struct dl_err *e)
{
	struct contributions c;
	uint32_t p = a->fragment;
	int code;

	pushes_gather(&g->pushes, a, &c);
	code = dl_merge_step(g->pool, g->segment[p], g->segments[p], c.item,
		c.n, c.products, step, e);
	pushes_gathered(&g->pushes, &c);
	return code;
}

/* An error that a narrow codec has left is paid with the first whole step. */
static int step_whole(
	struct globals *g, const struct dl_sync_action *a, struct dl_err *e)
{
	uint32_t p = a->fragment;
	struct shared *next = next_values(g, p);
	const struct dl_step step = {.outer = g->outer,
		.theta = g->values[p]->data,
		.next = next->data,
		.momentum = g->momentum[p],
		.alike = &g->alike[p]};
	int code = merge(g, a, &step, e);

	keep_values(g, p, next, !code);
	if (!code && g->error[p])
		update_settle(next->data, g->error[p],
			g->layout->fragment[p].elements);
	if (!code)
		drop_error(g, p);
	return code;
}

static int step_narrow(
	struct globals *g, const struct dl_sync_action *a, struct dl_err *e)
{
	uint32_t p = a->fragment;
	struct shared *next = next_values(g, p);
	struct update_work w = {.quant = &g->quant,
		.before = g->values[p]->data,
		.values = next->data};
	const struct dl_step step = {.outer = g->outer,
		.theta = w.before,
		.momentum = g->momentum[p],
		.alike = &g->alike[p],
		.made = update_block,
		.ctx = &w};
	struct shared *data;
	int code, owed = g->error[p] != NULL;

	if (!owed)
		g->error[p] = memset(
			shelf_take(&g->shelf, p), 0, shelf_bytes(&g->shelf, p));
	w.error = g->error[p];
	update_begin(&w, &g->shelf, g->layout, p);
	code = merge(g, a, &step, e);
	data = update_end(&w);
	keep_values(g, p, next, !code);
	if (!code)
		g->update[p].data = data;
	else
		shared_retire(data);
	if (code && !owed)
		drop_error(g, p);
	return code;
}

int globals_merge(
	struct globals *g, const struct dl_sync_action *a, struct dl_err *e)
{
	uint32_t p = a->fragment;
	struct update *update = &g->update[p];

	g->alike[p] = (struct dl_alike)DL_ALIKE_UNKNOWN;
	leave_held(g, p);
	shared_retire(update->data);
	*update = (struct update){
		.base = {a->version.epoch, a->version.number - 1},
		.version = a->version};
	return g->quant.codec == DL_CODEC_F32 ? step_whole(g, a, e)
					      : step_narrow(g, a, e);
}

int globals_commit(struct globals *g, uint32_t p,
	const struct dl_sync_saved *saved, struct dl_err *e)
{
	return dl_store_commit(g->store, p, globals_values(g, p),
		g->momentum[p], g->error[p], saved, e);
}

const struct update *globals_update(
	const struct globals *g, uint32_t p, struct dl_version version)
{
	const struct update *update = &g->update[p];

	return update->data && !dl_version_cmp(update->version, version)
		       ? update
		       : NULL;
}

int globals_write_model(
	const struct globals *g, const char *path, struct dl_err *e)
{
	uint32_t fragments = g->layout->fragments;
	const float **values = dl_alloc_array(fragments, sizeof *values);
	int code;

	for (uint32_t p = 0; p < fragments; p++)
		values[p] = globals_values(g, p);
	code = dl_packed_write(g->layout, values, DL_PACKED_OWN,
		&(struct dl_save){.path = path}, e);
	free(values);
	return code;
}
