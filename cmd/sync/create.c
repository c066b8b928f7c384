#include "cmd/sync/create.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "cmd/cmd.h"
#include "state/store.h"
#include "tensor/layout.h"

static int find_layout(struct dl_layout *l, const struct dl_model *m,
	const struct sync_options *o, struct dl_err *e)
{
	struct dl_plan_options plan = {
		.strategy = DL_BALANCED, .fragments = o->fragments};
	int code;

	if (!o->layout)
		return dl_layout_plan(l, m, &plan, e);
	code = dl_layout_read(l, o->layout, e);
	if (code)
		return code;
	code = dl_layout_match(l, m, e);
	if (code)
		dl_layout_release(l);
	return code;
}

static int get_layout(struct dl_layout *l, const struct dl_model *m,
	const struct sync_options *o, struct dl_err *e)
{
	int code = find_layout(l, m, o, e);

	if (code || !o->layout_hash || !strcmp(l->hash, o->layout_hash))
		return code;
	dl_layout_release(l);
	return dl_fail(e, DL_DATA, "of another layout: which --layout?");
}

static void free_values(const struct dl_layout *l, float **values)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if (values[p])
			dl_big_free(values[p],
				l->fragment[p].elements * sizeof(float));
	free(values);
}

static int read_values(const struct dl_layout *l, const struct dl_model *m,
	float **values, struct dl_err *e)
{
	int code = 0;

	for (uint32_t p = 0; p < l->fragments; p++)
		values[p] =
			dl_big_alloc(l->fragment[p].elements * sizeof(float));
	for (size_t i = 0; !code && i < l->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule != DL_ALIAS)
			code = dl_model_read_f32(m,
				dl_model_find(m, t->name.s, t->name.n),
				values[t->fragment] + t->offset, e);
	}
	return code;
}

static void name_run(struct dl_store_run *run, const struct sync_options *o)
{
	run->h = o->h ? o->h : o->config.schedule.h;
	if (o->run)
		strcpy(run->name, o->run);
	else
		snprintf(run->name, sizeof run->name, "run-%08x",
			randombytes_random());
}

static int write_store(const struct sync_options *o, const struct dl_layout *l,
	const struct dl_model *m, struct dl_err *e)
{
	struct dl_sync_config c = o->config;
	float **values = dl_alloc_array(l->fragments, sizeof *values);
	struct dl_store_run run;
	struct dl_sync_saved saved;
	struct dl_sync *core;
	int code = read_values(l, m, values, e);

	name_run(&run, o);
	c.schedule.fragments = l->fragments;
	c.schedule.h = run.h;
	core = dl_sync_new(&c);
	dl_sync_save(core, UINT32_MAX, &saved);
	dl_sync_free(core);
	if (!code)
		code = dl_store_create(o->store, &run, l, &saved,
			(const float *const *)values, e);
	dl_sync_saved_release(&saved);
	free_values(l, values);
	if (!code)
		cmd_note("run %s: %u fragments, H %llu, in %s", run.name,
			l->fragments, (unsigned long long)run.h, o->store);
	return code;
}

int sync_create(const struct sync_options *o, struct dl_err *e)
{
	struct dl_layout l;
	struct dl_model m;
	int code;

	if (!o->model)
		return dl_fail(e, DL_USAGE,
			"%s: no store yet, and no model to make one from",
			o->store);
	code = dl_model_open(&m, o->model, e);
	if (code)
		return code;
	code = get_layout(&l, &m, o, e);
	if (!code) {
		code = write_store(o, &l, &m, e);
		dl_layout_release(&l);
	}
	dl_model_close(&m);
	return code;
}
