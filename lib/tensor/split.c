#include "tensor/split.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/emit.h"

/* The model's own metadata are those of its first record. */
static const struct dl_header *first(const struct dl_model *m)
{
	return &m->file[0].record[0].header;
}

uint32_t dl_split_records(const struct dl_layout *l, const struct dl_model *m)
{
	return l->fragments + (m->tensors > l->tensors || first(m)->metas);
}

struct source {
	const struct dl_model *m;
	const struct dl_model_tensor **tensor; /* by handle */
};

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct source *s = ctx;

	return dl_model_read(s->m, s->tensor[handle], at, block, n, e);
}

static int whence(void *ctx, size_t handle, uint64_t *at)
{
	const struct source *s = ctx;
	const struct dl_model_tensor *t = s->tensor[handle];

	*at = t->info.offset;
	return t->coded ? -1 : s->m->file[t->file].fd;
}

static void describe(const struct dl_layout *l, const struct dl_model *m,
	uint32_t i, struct dl_writer *w)
{
	dl_writer_meta(w, "dl.format", "1");
	dl_writer_meta(w, "dl.kind", "params");
	dl_writer_meta(w, "dl.layout", l->hash);
	dl_writer_meta_u64(w, "dl.fragments", l->fragments);
	dl_writer_meta_u64(w, "dl.records", dl_split_records(l, m));
	if (i < l->fragments) {
		dl_writer_meta_u64(w, "dl.fragment", i);
	} else {
		dl_writer_meta(w, "dl.fragment", "local");
		dl_emit_meta(w, first(m));
	}
}

/* A record in the making. */
struct cut {
	struct dl_writer w;
	struct source s;
	uint64_t *size;
};

static void take(struct cut *c, const struct dl_model_tensor *t)
{
	const struct dl_tensor *info = &t->info;
	size_t handle = dl_writer_tensor(&c->w, info->name.s, info->name.n,
		info->dtype, info->rank, info->shape);

	c->s.tensor[handle] = t;
	c->size[handle] = info->size;
}

static void take_fragment(struct cut *c, const struct dl_layout *l, uint32_t i)
{
	const struct dl_layout_tensor *t = &l->tensor[l->fragment[i].first];

	for (size_t n = l->fragment[i].tensors; n--; t++)
		take(c, dl_model_find(c->s.m, t->name.s, t->name.n));
}

static void take_local(struct cut *c, const struct dl_layout *l)
{
	for (size_t i = 0; i < c->s.m->tensors; i++) {
		const struct dl_model_tensor *t = &c->s.m->tensor[i];

		if (!dl_layout_find(l, t->info.name.s, t->info.name.n))
			take(c, t);
	}
}

int dl_split_write(const struct dl_layout *l, const struct dl_model *m,
	uint32_t i, struct dl_output *o, struct dl_err *e)
{
	size_t most = i < l->fragments ? l->fragment[i].tensors : m->tensors;
	struct cut c = {
		.w = DL_WRITER_INIT,
		.s = {m, dl_alloc_array(most, sizeof *c.s.tensor)},
		.size = dl_alloc_array(most, sizeof *c.size),
	};
	int rc;

	describe(l, m, i, &c.w);
	if (i < l->fragments)
		take_fragment(&c, l, i);
	else
		take_local(&c, l);
	rc = dl_emit_from(o, &c.w, c.size, fill, whence, &c.s, e);
	free(c.s.tensor);
	free(c.size);
	return rc;
}
