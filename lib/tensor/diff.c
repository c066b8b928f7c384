#include "tensor/diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/arith.h"
#include "tensor/emit.h"

enum { BLOCK = 1 << 16 }; /* elements */

struct name {
	char text[80];
};

static const char *print(struct name *n, const struct dl_tensor *t)
{
	return dl_scrub(n->text, sizeof n->text, t->name.s, t->name.n);
}

static int same_shape(const struct dl_tensor *a, const struct dl_tensor *b)
{
	return a->rank == b->rank &&
	       !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

/* A pair of tensors that is read side by side. */
struct pair {
	const struct dl_model *am, *bm;
	const struct dl_model_tensor *a, *b;
};

static int read_pair(const struct pair *p, uint64_t at, void *a, void *b,
	size_t n, struct dl_err *e)
{
	int rc = dl_model_read(p->am, p->a, at, a, n, e);

	return rc ? rc : dl_model_read(p->bm, p->b, at, b, n, e);
}

/* 0, 1 when the bits differ, or a code of reading. */
static int equal_bits(const struct pair *p, struct dl_err *e)
{
	uint64_t size = p->a->info.size;
	unsigned char *a = dl_alloc(dl_emit_block(&size, 1));
	unsigned char *b = dl_alloc(dl_emit_block(&size, 1));
	int rc = 0;

	for (uint64_t at = 0; !rc && at < size; at += DL_EMIT_BLOCK) {
		size_t n = size - at < DL_EMIT_BLOCK ? (size_t)(size - at)
						     : DL_EMIT_BLOCK;
		unsigned width = dl_dtype_bits(p->a->info.dtype) / 8;
		struct name name;
		size_t i = 0;

		rc = read_pair(p, at, a, b, n, e);
		if (rc || !memcmp(a, b, n))
			continue;
		while (a[i] == b[i])
			i++;
		rc = dl_fail(e, DL_NO, "tensor \"%s\" differs at element %llu",
			print(&name, &p->a->info),
			(unsigned long long)((at + i) / (width ? width : 1)));
	}
	free(a);
	free(b);
	return rc;
}

static int compare_values(const struct pair *p, const double *a,
	const double *b, size_t n, uint64_t at, double tolerance,
	struct dl_err *e)
{
	struct name name;

	for (size_t i = 0; i < n; i++) {
		int both_nan = isnan(a[i]) && isnan(b[i]);

		if (a[i] == b[i] || both_nan || fabs(a[i] - b[i]) <= tolerance)
			continue;
		return dl_fail(e, DL_NO,
			"tensor \"%s\" differs at element %llu: %.9g and %.9g",
			print(&name, &p->a->info), (unsigned long long)(at + i),
			a[i], b[i]);
	}
	return 0;
}

static int read_f64(const struct dl_model *m, const struct dl_model_tensor *t,
	uint64_t at, void *raw, double *out, size_t n, struct dl_err *e)
{
	unsigned width = dl_dtype_bits(t->info.dtype) / 8;
	int rc = dl_model_read(m, t, at * width, raw, n * width, e);

	if (!rc)
		dl_to_f64(out, raw, t->info.dtype, n);
	return rc;
}

static int close_values(
	const struct pair *p, double tolerance, struct dl_err *e)
{
	uint64_t elements = p->a->info.elements;
	size_t most = elements < BLOCK ? (size_t)elements : BLOCK;
	double *a = dl_alloc_array(3 * most, sizeof *a);
	double *b = a + most, *raw = b + most;
	int rc = 0;

	for (uint64_t at = 0; !rc && at < elements; at += most) {
		size_t n =
			elements - at < most ? (size_t)(elements - at) : most;

		rc = read_f64(p->am, p->a, at, raw, a, n, e);
		if (!rc)
			rc = read_f64(p->bm, p->b, at, raw, b, n, e);
		if (!rc)
			rc = compare_values(p, a, b, n, at, tolerance, e);
	}
	free(a);
	return rc;
}

static int equal_tensor(
	const struct pair *p, double tolerance, struct dl_err *e)
{
	const struct dl_tensor *a = &p->a->info, *b = &p->b->info;
	int able = dl_arith_able(a->dtype) && dl_arith_able(b->dtype);
	struct name name;

	if (!same_shape(a, b))
		return dl_fail(e, DL_NO, "tensor \"%s\" has another shape",
			print(&name, a));
	if (a->dtype != b->dtype && (tolerance < 0 || !able))
		return dl_fail(e, DL_NO, "tensor \"%s\" is %s and %s",
			print(&name, a), dl_dtype_name(a->dtype),
			dl_dtype_name(b->dtype));
	return tolerance < 0 || !able ? equal_bits(p, e)
				      : close_values(p, tolerance, e);
}

int dl_diff_equal(const struct dl_model *a, const struct dl_model *b,
	double tolerance, struct dl_err *e)
{
	struct name name;

	for (size_t i = 0, j = 0; i < a->tensors || j < b->tensors; i++, j++) {
		struct pair p = {a, b, &a->tensor[i], &b->tensor[j]};
		int order = i == a->tensors ? 1
			    : j == b->tensors
				    ? -1
				    : dl_string_compare(
					      &p.a->info.name, &p.b->info.name);
		int rc;

		if (order)
			return dl_fail(e, DL_NO,
				"tensor \"%s\" is in the %s only",
				print(&name,
					order < 0 ? &p.a->info : &p.b->info),
				order < 0 ? "first" : "second");
		rc = equal_tensor(&p, tolerance, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* The deltas of one record, by handle. */
struct deltas {
	struct pair *pair;
	uint64_t *size;
	unsigned char *a, *b;
};

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct deltas *d = ctx;
	const struct pair *p = &d->pair[handle];
	enum dl_dtype t = p->a->info.dtype;
	unsigned width = dl_dtype_bits(t) / 8;
	size_t count = n / sizeof(float);
	int rc = read_pair(
		p, at / sizeof(float) * width, d->a, d->b, count * width, e);

	if (!rc)
		dl_subtract(block, d->a, d->b, t, count);
	return rc;
}

/* Adds theta's tensor t to the record. */
static int take(struct deltas *d, struct dl_writer *w, const struct pair *p,
	struct dl_err *e)
{
	const struct dl_tensor *t = &p->a->info;
	struct name name;

	if (!p->b)
		return dl_fail(e, DL_DATA, "tensor \"%s\" is not in the base",
			print(&name, t));
	if (!same_shape(t, &p->b->info) || t->dtype != p->b->info.dtype)
		return dl_fail(e, DL_DATA,
			"tensor \"%s\" has another shape or dtype in the base",
			print(&name, t));
	if (!dl_arith_able(t->dtype)) {
		int rc = equal_bits(p, e);

		return rc == DL_NO ? dl_fail(e, DL_DATA,
					     "tensor \"%s\" differs, but %s "
					     "cannot be "
					     "subtracted",
					     print(&name, t),
					     dl_dtype_name(t->dtype))
				   : rc;
	}
	d->pair[w->tensors] = *p;
	d->size[w->tensors] = t->elements * sizeof(float);
	dl_writer_tensor(w, t->name.s, t->name.n, DL_F32, t->rank, t->shape);
	return 0;
}

static int take_found(struct deltas *d, struct dl_writer *w,
	const struct dl_model *base, const struct dl_model *theta,
	const struct dl_model_tensor *t, struct dl_err *e)
{
	const struct dl_string *s = &t->info.name;
	struct pair p = {theta, base, t, dl_model_find(base, s->s, s->n)};

	return take(d, w, &p, e);
}

static int take_all(struct deltas *d, struct dl_writer *w,
	const struct dl_model *base, const struct dl_model *theta,
	struct dl_err *e)
{
	struct name name;
	int rc = 0;

	for (size_t i = 0; !rc && i < theta->tensors; i++)
		rc = take_found(d, w, base, theta, &theta->tensor[i], e);
	for (size_t i = 0; !rc && i < base->tensors; i++) {
		const struct dl_model_tensor *t = &base->tensor[i];

		if (!dl_model_find(theta, t->info.name.s, t->info.name.n))
			rc = dl_fail(e, DL_DATA,
				"%s: tensor \"%s\": in the base only",
				base->file[t->file].path,
				print(&name, &t->info));
	}
	return rc;
}

/* Those that theta has of a fragment, tied ones aside. */
static int take_fragment(struct deltas *d, struct dl_writer *w,
	const struct dl_model *base, const struct dl_model *theta,
	const struct dl_layout *l, uint32_t p, struct dl_err *e)
{
	const struct dl_layout_tensor *want = &l->tensor[l->fragment[p].first];
	int rc = 0;

	for (size_t n = l->fragment[p].tensors; !rc && n--; want++) {
		const struct dl_model_tensor *t =
			dl_model_find(theta, want->name.s, want->name.n);

		if (t && want->rule != DL_ALIAS)
			rc = take_found(d, w, base, theta, t, e);
	}
	return rc;
}

static void put_meta(struct dl_writer *w, const struct dl_diff_meta *meta,
	size_t metas, const char *key, const char *value)
{
	for (size_t i = 0; i < metas; i++)
		if (!strcmp(meta[i].key, key))
			return;
	dl_writer_meta(w, key, value);
}

static void describe(struct dl_writer *w, const struct dl_layout *l, uint32_t p,
	const struct dl_diff_meta *meta, size_t metas)
{
	char fragment[16], fragments[16];

	for (size_t i = 0; i < metas; i++)
		dl_writer_meta(w, meta[i].key, meta[i].value);
	put_meta(w, meta, metas, "dl.format", "1");
	put_meta(w, meta, metas, "dl.kind", "delta");
	if (!l)
		return;
	snprintf(fragment, sizeof fragment, "%u", p);
	snprintf(fragments, sizeof fragments, "%u", l->fragments);
	put_meta(w, meta, metas, "dl.layout", l->hash);
	put_meta(w, meta, metas, "dl.fragment", fragment);
	put_meta(w, meta, metas, "dl.fragments", fragments);
	put_meta(w, meta, metas, "dl.records", fragments);
}

int dl_diff_write(const struct dl_model *base, const struct dl_model *theta,
	const struct dl_layout *l, uint32_t p, const struct dl_diff_meta *meta,
	size_t metas, struct dl_output *o, struct dl_err *e)
{
	struct dl_writer w = DL_WRITER_INIT;
	size_t most = l ? l->fragment[p].tensors : theta->tensors, block;
	struct deltas d = {
		.pair = dl_alloc_array(most, sizeof *d.pair),
		.size = dl_alloc_array(most, sizeof *d.size),
	};
	int rc;

	describe(&w, l, p, meta, metas);
	rc = l ? take_fragment(&d, &w, base, theta, l, p, e)
	       : take_all(&d, &w, base, theta, e);
	/* A block of f32 comes from at most as many doubles. */
	block = 2 * dl_emit_block(d.size, w.tensors);
	d.a = dl_alloc(block);
	d.b = dl_alloc(block);
	if (!rc)
		rc = dl_emit(o, &w, d.size, fill, &d, e);
	else
		dl_writer_release(&w);
	free(d.pair);
	free(d.size);
	free(d.a);
	free(d.b);
	return rc;
}
