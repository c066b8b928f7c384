#include "cmd/merge/output.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/merge/meta.h"
#include "tensor/arith.h"
#include "tensor/emit.h"

/* A record in the making. */
struct making {
	const struct base *b;
	struct dl_writer w;
	struct entry {
		const struct dl_model_tensor *t;
		const float *values; /* NULL: the base's */
	} * entry;		     /* by handle */
	uint64_t *size;
};

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct making *m = ctx;
	const struct entry *entry = &m->entry[handle];
	const struct dl_tensor *info = &entry->t->info;
	enum dl_dtype dtype = info->dtype;
	size_t width = dl_dtype_bits(dtype) / 8, bad;
	const float *values;
	char name[80];

	if (!entry->values)
		return dl_model_read(&m->b->model, entry->t, at, block, n, e);
	values = entry->values + at / width;
	dl_from_f32(block, values, dtype, n / width);
	bad = dl_find_overflow(block, values, dtype, n / width);
	if (bad == n / width)
		return 0;
	return dl_fail(e, DL_DATA,
		"tensor \"%s\": element %llu is too large for %s",
		dl_scrub(name, sizeof name, info->name.s, info->name.n),
		(unsigned long long)(at / width + bad), dl_dtype_name(dtype));
}

static void take(
	struct making *m, const struct dl_model_tensor *t, const float *values)
{
	const struct dl_tensor *info = &t->info;
	size_t handle = dl_writer_tensor(&m->w, info->name.s, info->name.n,
		info->dtype, info->rank, info->shape);

	m->entry[handle] = (struct entry){t, values};
	m->size[handle] = info->size;
}

/* Fragment p's tensors; those that are tied too, where the base has them. */
static void take_fragment(struct making *m, uint32_t p, const float *theta)
{
	const struct dl_layout *l = &m->b->layout;
	const struct dl_layout_fragment *f = &l->fragment[p];

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		const struct dl_model_tensor *found =
			dl_model_find(&m->b->model, t->name.s, t->name.n);

		if (found)
			take(m, found, theta ? theta + t->offset : NULL);
	}
}

static void take_local(struct making *m)
{
	const struct dl_model *model = &m->b->model;

	for (size_t i = 0; i < model->tensors; i++) {
		const struct dl_model_tensor *t = &model->tensor[i];

		if (!dl_layout_find(
			    &m->b->layout, t->info.name.s, t->info.name.n))
			take(m, t, NULL);
	}
}

/* The model's own metadata: of the first record that has any. */
static void take_meta(struct making *m)
{
	const struct dl_model *model = &m->b->model;

	for (size_t i = 0; i < model->files; i++)
		for (size_t r = 0; r < model->file[i].records; r++)
			if (dl_emit_meta(
				    &m->w, &model->file[i].record[r].header))
				return;
}

static void begin(struct making *m, const struct base *b, uint32_t p)
{
	*m = (struct making){.b = b, .w = DL_WRITER_INIT};
	m->entry = dl_alloc_array(b->model.tensors, sizeof *m->entry);
	m->size = dl_alloc_array(b->model.tensors, sizeof *m->size);
	base_describe(b, p, "params", &m->w);
}

static int end(struct making *m, struct dl_output *o, struct dl_err *e)
{
	int rc = dl_emit(o, &m->w, m->size, fill, m, e);

	free(m->entry);
	free(m->size);
	return rc;
}

int output_values(const struct base *b, uint32_t p, const float *theta,
	struct dl_output *o, struct dl_err *e)
{
	struct dl_version v = theta ? base_next(b, p) : b->fragment[p].version;
	struct making m;

	begin(&m, b, p);
	if (v.epoch)
		meta_put_version(&m.w, "dl.version", v);
	take_fragment(&m, p, theta);
	if (b->whole) {
		take_local(&m);
		take_meta(&m);
	}
	return end(&m, o, e);
}

int output_local(const struct base *b, struct dl_output *o, struct dl_err *e)
{
	struct making m;

	begin(&m, b, b->layout.fragments);
	take_local(&m);
	take_meta(&m);
	return end(&m, o, e);
}

int output_packed(const struct base *b, uint32_t p, const char *kind,
	const float *data, struct dl_output *o, struct dl_err *e)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;
	int rc;

	base_describe(b, p, kind, &w);
	if (b->fragment[p].version.epoch && !strcmp(kind, "momentum"))
		meta_put_version(&w, "dl.version", base_next(b, p));
	else if (b->fragment[p].version.epoch)
		meta_put_version(&w, "dl.base", b->fragment[p].version);
	dl_layout_record(&b->layout, p, &w);
	dl_writer_finish(&w, &head, NULL);
	dl_writer_release(&w);
	rc = dl_output_write(o, head.data, head.len, e);
	if (!rc)
		rc = dl_output_write(o, data,
			b->layout.fragment[p].elements * sizeof *data, e);
	dl_buf_free(&head);
	return rc;
}
