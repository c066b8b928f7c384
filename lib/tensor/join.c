#include "tensor/join.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/arith.h"

/* A tensor of the joined model and where its data come from. */
struct entry {
	struct dl_string name;
	enum dl_dtype dtype;
	unsigned rank;
	const uint64_t *shape;
	uint64_t elements;
	const struct dl_model_tensor *base, *part; /* at least one */
};

struct joined {
	const struct dl_join *j;
	struct entry *entry; /* by handle */
	uint64_t *size;
	struct dl_writer w;
	unsigned char *raw; /* blocks */
	float *f32;
};

static int is_delta(const struct dl_join *j, const struct dl_model_tensor *t)
{
	const struct dl_records *file = &j->parts->file[t->file];

	return dl_join_is_delta(&file->record[t->record].header);
}

/* Reads n elements of a part from element at on as f32. */
static int read_f32(const struct joined *d, const struct dl_model_tensor *t,
	uint64_t at, size_t n, struct dl_err *e)
{
	unsigned width = dl_dtype_bits(t->info.dtype) / 8;
	int rc = dl_model_read(d->j->parts, t, at * width, d->raw, n * width,
		e);

	if (!rc)
		dl_to_f32(d->f32, d->raw, t->info.dtype, n);
	return rc;
}

/* Of the n elements of t from element at on, which f32 made. */
static int check_range(const struct joined *d, const struct entry *t,
	uint64_t at, const void *block, size_t n, struct dl_err *e)
{
	size_t bad = dl_find_overflow(block, d->f32, t->dtype, n);
	char name[80];

	return bad == n ? 0
			: dl_fail(e, DL_DATA,
				  "tensor \"%s\": element %llu is too large for "
				  "%s",
				  dl_scrub(name, sizeof name, t->name.s,
					  t->name.n),
				  (unsigned long long)at + bad,
				  dl_dtype_name(t->dtype));
}

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct joined *d = ctx;
	const struct entry *t = &d->entry[handle];
	unsigned width = dl_dtype_bits(t->dtype) / 8;
	int rc;

	if (!t->part)
		return dl_model_read(d->j->base, t->base, at, block, n, e);
	if (is_delta(d->j, t->part)) {
		rc = dl_model_read(d->j->base, t->base, at, block, n, e);
		if (!rc)
			rc = read_f32(d, t->part, at / width, n / width, e);
		if (rc)
			return rc;
		dl_add(block, d->f32, t->dtype, n / width);
		return check_range(d, t, at / width, block, n / width, e);
	}
	if (t->part->info.dtype == t->dtype)
		return dl_model_read(d->j->parts, t->part, at, block, n, e);
	rc = read_f32(d, t->part, at / width, n / width, e);
	if (rc)
		return rc;
	dl_from_f32(block, d->f32, t->dtype, n / width);
	return check_range(d, t, at / width, block, n / width, e);
}

static void add(struct joined *d, const struct entry *t, uint64_t size)
{
	size_t handle = dl_writer_tensor(&d->w, t->name.s, t->name.n, t->dtype,
		t->rank, t->shape);

	d->entry[handle] = *t;
	d->size[handle] = size;
}

/* Takes the tensor that the base, the parts or both hold. */
static void take(struct joined *d, const struct dl_model_tensor *base,
	const struct dl_model_tensor *part)
{
	const struct dl_tensor *t = base ? &base->info : &part->info;
	const struct dl_layout_tensor *l = d->j->layout
		? dl_layout_find(d->j->layout, t->name.s, t->name.n)
		: NULL;
	struct entry entry = {t->name, t->dtype, t->rank, t->shape,
		t->elements, base, part};
	uint64_t size = t->size;

	if (!base && l && l->dtype != t->dtype) {
		entry.dtype = l->dtype;
		size = t->elements * (dl_dtype_bits(l->dtype) / 8);
	}
	add(d, &entry, size);
}

static const struct dl_model_tensor *find(const struct dl_model *m,
	const struct dl_string *name)
{
	return m ? dl_model_find(m, name->s, name->n) : NULL;
}

/* A tied tensor that no part holds follows its target; 1 when it was that. */
static int take_alias(struct joined *d, const struct dl_layout_tensor *l)
{
	const struct dl_model_tensor *base, *part;

	if (!l || l->rule != DL_ALIAS || find(d->j->parts, &l->name))
		return 0;
	base = find(d->j->base, &l->alias);
	part = find(d->j->parts, &l->alias);
	if (!part && base)
		return 0;
	add(d,
		&(struct entry){l->name, base ? base->info.dtype : l->dtype,
			l->rank, l->shape, l->elements, base, part},
		l->elements * (dl_dtype_bits(l->dtype) / 8));
	return 1;
}

static void take_all(struct joined *d)
{
	const struct dl_join *j = d->j;

	for (size_t i = 0; j->base && i < j->base->tensors; i++) {
		const struct dl_model_tensor *t = &j->base->tensor[i];
		const struct dl_string *s = &t->info.name;
		const struct dl_layout_tensor *l =
			j->layout ? dl_layout_find(j->layout, s->s, s->n)
				  : NULL;

		if (!take_alias(d, l))
			take(d, t, find(j->parts, s));
	}
	if (j->base)
		return;
	for (size_t i = 0; i < j->parts->tensors; i++)
		take(d, NULL, &j->parts->tensor[i]);
	for (size_t i = 0; j->layout && i < j->layout->tensors; i++)
		take_alias(d, &j->layout->tensor[i]);
}

/* The model's own metadata: of the base, else of the first that has any. */
static void take_meta(struct joined *d)
{
	const struct dl_model *m = d->j->base ? d->j->base : d->j->parts;

	for (size_t f = 0; f < m->files; f++)
		for (size_t r = 0; r < m->file[f].records; r++)
			if (dl_emit_meta(&d->w, &m->file[f].record[r].header))
				return;
}

int dl_join_write(const struct dl_join *j, const struct dl_save *s,
	struct dl_err *e)
{
	size_t most = (j->base ? j->base->tensors : j->parts->tensors)
		+ (j->layout ? j->layout->tensors : 0);
	struct joined d = {
		.j = j,
		.entry = dl_alloc_array(most, sizeof *d.entry),
		.size = dl_alloc_array(most, sizeof *d.size),
		.w = DL_WRITER_INIT,
		/* A block holds at most as many elements as it has bytes. */
		.raw = dl_alloc_array(DL_EMIT_BLOCK, sizeof(double)),
		.f32 = dl_alloc_array(DL_EMIT_BLOCK, sizeof(float)),
	};
	int rc;

	take_meta(&d);
	take_all(&d);
	rc = dl_save(s, &d.w, d.size, fill, &d, e);
	free(d.entry);
	free(d.size);
	free(d.raw);
	free(d.f32);
	return rc;
}
