#include "cmd/serve/globals.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/segments.h"
#include "merge/outer.h"
#include "tensor/packed.h"

static struct values *new_values(struct globals *g, uint32_t p)
{
	struct values *v = dl_alloc(sizeof *v);

	v->owner = g;
	v->fragment = p;
	v->data = shelf_take(&g->shelf, p);
	return v;
}

static void free_values(struct values *v)
{
	if (!v)
		return;
	shelf_give(&v->owner->shelf, v->fragment, v->data);
	free(v);
}

static void allocate(struct globals *g, const struct sync_options *o)
{
	const struct dl_layout *layout = dl_store_layout(g->store);
	uint32_t n = layout->fragments;

	g->layout = layout;
	g->outer = o->outer;
	g->pool = dl_pool_new(o->threads);
	g->segment = dl_alloc_array(n, sizeof *g->segment);
	g->segments = dl_alloc_array(n, sizeof *g->segments);
	g->values = dl_alloc_array(n, sizeof *g->values);
	g->momentum = dl_alloc_array(n, sizeof *g->momentum);
	shelf_init(&g->shelf, layout, 1);
	for (uint32_t p = 0; p < n; p++) {
		size_t bytes = shelf_bytes(&g->shelf, p);

		g->segments[p] =
			segments_cut(layout, p, o->rule, &g->segment[p]);
		g->values[p] = new_values(g, p);
		g->momentum[p] = shelf_take(&g->shelf, p);
		if (bytes > g->update_bytes)
			g->update_bytes = bytes;
	}
	g->update = dl_big_alloc(g->update_bytes);
}

int globals_open(
	struct globals *g, const struct sync_options *o, struct dl_err *e)
{
	int code = dl_store_open(&g->store, o->store, DL_STORE_OWN, e);

	if (code)
		return code;
	allocate(g, o);
	for (uint32_t p = 0; !code && p < g->layout->fragments; p++)
		code = dl_store_load(
			g->store, p, g->values[p]->data, g->momentum[p], e);
	if (code)
		globals_close(g);
	return code;
}

void globals_close(struct globals *g)
{
	while (g->push)
		globals_drop(g, g->push);
	for (uint32_t p = 0; g->values && p < g->layout->fragments; p++) {
		free_values(g->values[p]);
		shelf_give(&g->shelf, p, g->momentum[p]);
		free(g->segment[p]);
	}
	if (g->update)
		dl_big_free(g->update, g->update_bytes);
	free(g->segment);
	free(g->segments);
	free(g->values);
	free(g->momentum);
	shelf_release(&g->shelf);
	dl_pool_free(g->pool);
	dl_store_close(g->store);
	*g = (struct globals){0};
}

struct push *globals_push(struct globals *g, uint32_t fragment)
{
	struct push *push = dl_alloc(sizeof *push);

	push->fragment = fragment;
	push->delta = shelf_take(&g->shelf, fragment);
	push->next = g->push;
	g->push = push;
	return push;
}

void globals_arrived(struct globals *g, struct push *push)
{
	push->id = ++g->pushes;
	push->norm = dl_norm(g->pool, push->delta,
		g->layout->fragment[push->fragment].elements);
}

void globals_drop(struct globals *g, struct push *push)
{
	struct push **at = &g->push;

	while (*at != push)
		at = &(*at)->next;
	*at = push->next;
	shelf_give(&g->shelf, push->fragment, push->delta);
	free(push);
}

static struct push *find_push(const struct globals *g, uint64_t id)
{
	struct push *push = g->push;

	while (push && push->id != id)
		push = push->next;
	return push;
}

void globals_release_push(struct globals *g, uint64_t id)
{
	struct push *push = find_push(g, id);

	if (push)
		globals_drop(g, push);
}

static void scale(float *x, float by, size_t n)
{
	for (size_t i = 0; by != 1 && i < n; i++)
		x[i] *= by;
}

/* The pushes of one learner, already in order, become one delta, in the first
 * of them; returns how many there were. */
static size_t gather(struct globals *g, const struct dl_sync_part *part,
	size_t parts, struct dl_contribution *c)
{
	struct push *first = find_push(g, part[0].push);
	size_t n = g->layout->fragment[first->fragment].elements, i = 1;

	*c = (struct dl_contribution){.name = part[0].learner,
		.weight = part[0].weight,
		.scale = part[0].scale,
		.delta = first->delta};
	if (parts == 1 || strcmp(part[1].learner, part[0].learner) != 0)
		return 1;
	c->scale = 1;
	scale(first->delta, (float)part[0].scale, n);
	for (; i < parts && !strcmp(part[i].learner, part[0].learner); i++)
		dl_merge_add(first->delta, part[i].scale,
			find_push(g, part[i].push)->delta, n);
	return i;
}

/* The values of p to be changed: those that somebody reads stay as they are,
 * and a copy takes their place. */
static float *writable(struct globals *g, uint32_t p)
{
	struct values *now = g->values[p];

	if (now->readers) {
		g->values[p] = new_values(g, p);
		memcpy(g->values[p]->data, now->data,
			shelf_bytes(&g->shelf, p));
		now->old = 1;
	}
	return g->values[p]->data;
}

int globals_merge(
	struct globals *g, const struct dl_sync_action *a, struct dl_err *e)
{
	struct dl_contribution *c = dl_alloc_array(a->parts, sizeof *c);
	uint32_t p = a->fragment;
	size_t n = 0, i = 0;
	int code;

	while (i < a->parts)
		i += gather(g, a->part + i, a->parts - i, &c[n++]);
	code = dl_merge_fragment(g->pool, g->segment[p], g->segments[p], c, n,
		g->update, NULL, e);
	free(c);
	if (code)
		return code;
	dl_outer_step(g->pool, &g->outer, g->segment[p], g->segments[p],
		g->update, writable(g, p), g->momentum[p]);
	return 0;
}

struct values *globals_read(struct globals *g, uint32_t p)
{
	g->values[p]->readers++;
	return g->values[p];
}

void values_done(struct values *v)
{
	if (!--v->readers && v->old)
		free_values(v);
}

int globals_write_model(
	const struct globals *g, const char *path, struct dl_err *e)
{
	uint32_t fragments = g->layout->fragments;
	const float **values = dl_alloc_array(fragments, sizeof *values);
	int code;

	for (uint32_t p = 0; p < fragments; p++)
		values[p] = g->values[p]->data;
	code = dl_packed_write(g->layout, values, DL_PACKED_OWN,
		&(struct dl_save){.path = path}, e);
	free(values);
	return code;
}
