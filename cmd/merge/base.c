#include "cmd/merge/base.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/merge/meta.h"
#include "merge/merge.h"
#include "tensor/arith.h"
#include "tensor/emit.h"

static const struct dl_header *header_of(
	const struct base *b, const struct dl_model_tensor *t)
{
	return &b->model.file[t->file].record[t->record].header;
}

static int agree_on(char *known, size_t size, const struct dl_header *h,
	const char *key, struct dl_err *e)
{
	char text[80];
	const char *s;
	size_t n;

	if (meta_text(h, key, &s, e))
		return e->code;
	n = strlen(s);
	if (!n || !strcmp(known, s))
		return 0;
	if (*known || n >= size)
		return dl_fail(e, DL_DATA, "%s is \"%s\"%s%s", key,
			dl_scrub(text, sizeof text, s, n),
			*known ? ", not " : ": too long", known);
	memcpy(known, s, n + 1);
	return 0;
}

int base_agree(struct base *b, const struct dl_header *h, struct dl_err *e)
{
	int rc = agree_on(b->run, sizeof b->run, h, "dl.run", e);

	return rc ? rc : agree_on(b->hash, sizeof b->hash, h, "dl.layout", e);
}

/* A record of values: not a delta, an update or something packed. */
static int check_values(const struct dl_header *h, struct dl_err *e)
{
	static const char *const plain[] = {"", "f32", "f16", "bf16"};
	struct dl_version base;
	const char *kind, *codec;

	if (meta_text(h, "dl.kind", &kind, e) ||
		meta_text(h, "dl.codec", &codec, e) ||
		meta_version(h, "dl.base", &base, e))
		return e->code;
	if ((*kind && strcmp(kind, "params") && strcmp(kind, "global")) ||
		base.epoch)
		return dl_fail(e, DL_DATA, "not values to start from: %s",
			base.epoch ? "an update" : "dl.kind says otherwise");
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
		if (!strcmp(codec, plain[i]))
			return 0;
	return dl_fail(e, DL_DATA, "encoded: decode it first (dl-quant -d)");
}

/* A count that all records agree on, if they have it. */
static int take_count(const struct dl_header *h, const char *key, uint64_t *n,
	struct dl_err *e)
{
	uint64_t found;

	if (!dl_header_meta(h, key))
		return 0;
	if (dl_header_meta_u64(h, key, &found, e))
		return e->code;
	if (*n && found != *n)
		return dl_fail(e, DL_DATA, "%s differs between records", key);
	*n = found;
	return 0;
}

/* How many records there are of each sort. */
struct sorts {
	size_t cut, uncut;
};

static int take_record(struct base *b, const struct dl_header *h,
	struct sorts *n, struct dl_err *e)
{
	struct dl_writer scratch = DL_WRITER_INIT;
	uint32_t p;

	if (check_values(h, e) || base_agree(b, h, e) ||
		take_count(h, "dl.fragments", &b->fragments, e) ||
		take_count(h, "dl.records", &b->records, e) ||
		meta_fragment(h, &p, e))
		return e->code;
	n->cut += p != META_NO_FRAGMENT;
	n->uncut += p == META_NO_FRAGMENT;
	b->local |= p == META_LOCAL || dl_emit_meta(&scratch, h);
	dl_writer_release(&scratch);
	return n->cut && n->uncut ? dl_fail(e, DL_DATA,
					    "some records are of a fragment "
					    "(dl.fragment), others are not")
				  : 0;
}

static int take_records(struct base *b, int cut, struct dl_err *e)
{
	struct sorts n = {0, 0};

	for (size_t i = 0; i < b->model.files; i++) {
		const struct dl_records *file = &b->model.file[i];

		for (size_t r = 0; r < file->records; r++)
			if (take_record(b, &file->record[r].header, &n, e))
				return dl_at(
					e, "%s: record %zu", file->path, r);
	}
	b->whole = !cut && !n.cut;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static size_t find_number(const struct base *b, size_t n, uint32_t number)
{
	size_t low = 0;

	while (n) {
		size_t half = n / 2;

		if (b->fragment[low + half].number < number) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* The fragment's number in the record that the layout's tensor i is in. */
static uint32_t number_of(
	const struct base *b, const struct dl_layout *l, size_t i)
{
	const struct dl_string *s = &l->tensor[i].name;
	struct dl_err e;
	uint32_t p;

	meta_fragment(
		header_of(b, dl_model_find(&b->model, s->s, s->n)), &p, &e);
	return p;
}

/* Numbers the fragments that the planned tensors are in; returns how many. */
static size_t number_fragments(struct base *b, const struct dl_layout *plan)
{
	uint32_t *number = dl_alloc_array(plan->tensors, sizeof *number);
	size_t n = 0;

	for (size_t i = 0; i < plan->tensors; i++)
		number[i] = number_of(b, plan, i);
	qsort(number, plan->tensors, sizeof *number, by_value);
	b->fragment = dl_alloc_array(plan->tensors, sizeof *b->fragment);
	for (size_t i = 0; i < plan->tensors; i++)
		if (number[i] != META_LOCAL &&
			(!n || b->fragment[n - 1].number != number[i]))
			b->fragment[n++].number = number[i];
	free(number);
	return n;
}

/* The fragments that the records are of, as a layout of what is there. */
static int group(struct base *b, struct dl_layout *plan, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	size_t n = number_fragments(b, plan);
	int rc;

	dl_buf_str(&text, "# format\t1\n");
	for (size_t i = 0; i < plan->tensors; i++) {
		uint32_t number = number_of(b, plan, i);

		plan->tensor[i].fragment = (uint32_t)find_number(b, n, number);
		if (number != META_LOCAL)
			dl_layout_put_tensor(&plan->tensor[i], &text);
	}
	rc = dl_layout_parse(&b->layout, (const char *)text.data, text.len, e);
	dl_buf_free(&text);
	return rc;
}

/* Without a layout the rules are the default ones. */
static int plan(struct base *b, struct dl_err *e)
{
	const struct dl_plan_options one = {.fragments = 1};
	struct dl_layout l;
	int rc = dl_layout_plan(&l, &b->model, &one, e);

	if (rc)
		return rc;
	if (b->whole) {
		b->layout = l;
		b->fragment = dl_alloc(sizeof *b->fragment);
		return 0;
	}
	rc = group(b, &l, e);
	dl_layout_release(&l);
	return rc;
}

static int read_layout(struct base *b, const char *path, struct dl_err *e)
{
	int rc = dl_layout_read(&b->layout, path, e);

	if (rc)
		return rc;
	strcpy(b->hash, b->layout.hash);
	b->fragments = b->layout.fragments;
	b->fragment = dl_alloc_array(b->fragments, sizeof *b->fragment);
	for (uint32_t p = 0; p < b->layout.fragments; p++)
		b->fragment[p].number = p;
	return 0;
}

/* Fragment p is there as the layout has it, or not at all. */
static int check_fragment(struct base *b, uint32_t p, struct dl_err *e)
{
	const struct dl_layout_fragment *f = &b->layout.fragment[p];
	struct base_fragment *out = &b->fragment[p];
	size_t own = 0, found = 0;
	char name[80];

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &b->layout.tensor[i];
		const struct dl_model_tensor *m =
			dl_model_find(&b->model, t->name.s, t->name.n);

		own += t->rule != DL_ALIAS;
		if (!m)
			continue;
		found += t->rule != DL_ALIAS;
		dl_scrub(name, sizeof name, t->name.s, t->name.n);
		if (!dl_layout_same_shape(t, &m->info) ||
			!dl_arith_able(m->info.dtype))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" is not as the layout has it",
				name);
		if (meta_version(
			    header_of(b, m), "dl.version", &out->version, e))
			return e->code;
	}
	out->held = found == own;
	return !found || out->held
		       ? 0
		       : dl_fail(e, DL_DATA,
				 "only %zu of %zu tensors of fragment %u",
				 found, own, out->number);
}

static int check_fragments(struct base *b, struct dl_err *e)
{
	int rc = 0;

	for (uint32_t p = 0; !rc && p < b->layout.fragments; p++)
		rc = check_fragment(b, p, e);
	for (size_t i = 0; i < b->model.tensors; i++) {
		const struct dl_string *s = &b->model.tensor[i].info.name;

		b->local |= !dl_layout_find(&b->layout, s->s, s->n);
	}
	if (!b->records && b->fragments)
		b->records = b->fragments + (uint64_t)b->local;
	return rc;
}

int base_open(
	struct base *b, const char *path, const char *layout, struct dl_err *e)
{
	int rc;

	*b = (struct base){.model = DL_MODEL_INIT};
	rc = layout ? read_layout(b, layout, e) : 0;
	if (!rc)
		rc = dl_model_add(&b->model, path, e);
	if (!rc)
		rc = dl_model_list(&b->model, e);
	if (!rc)
		rc = take_records(b, layout != NULL, e);
	if (rc)
		return rc;
	rc = layout ? 0 : plan(b, e);
	if (!rc)
		rc = check_fragments(b, e);
	return rc ? dl_at(e, "%s", b->model.file[0].path) : 0;
}

void base_close(struct base *b)
{
	dl_model_close(&b->model);
	dl_layout_release(&b->layout);
	free(b->fragment);
}

int base_find(const struct base *b, const struct dl_header *h, uint32_t *p,
	struct dl_err *e)
{
	uint32_t n = b->layout.fragments, number;

	if (meta_fragment(h, &number, e))
		return e->code;
	if (number == META_LOCAL)
		return dl_fail(e, DL_DATA, "what is local is not merged");
	if (number == META_NO_FRAGMENT && n == 1)
		number = b->fragment[0].number;
	else if ((number == META_NO_FRAGMENT) != b->whole)
		return dl_fail(e, DL_DATA,
			b->whole ? "of one fragment, but the base is not cut: "
				   "give its layout (-l)"
				 : "of no fragment (dl.fragment), but the base "
				   "is cut");
	*p = (uint32_t)find_number(b, n, number);
	if (*p < n && b->fragment[*p].number == number && b->fragment[*p].held)
		return 0;
	return dl_fail(
		e, DL_DATA, "the base does not hold fragment %u", number);
}

void base_describe(
	const struct base *b, uint32_t p, const char *kind, struct dl_writer *w)
{
	dl_writer_meta(w, "dl.format", "1");
	dl_writer_meta(w, "dl.kind", kind);
	if (*b->run)
		dl_writer_meta(w, "dl.run", b->run);
	if (*b->hash)
		dl_writer_meta(w, "dl.layout", b->hash);
	if (b->whole)
		return;
	if (p < b->layout.fragments)
		dl_writer_meta_u64(w, "dl.fragment", b->fragment[p].number);
	else
		dl_writer_meta(w, "dl.fragment", "local");
	if (b->fragments)
		dl_writer_meta_u64(w, "dl.fragments", b->fragments);
	if (b->records)
		dl_writer_meta_u64(w, "dl.records", b->records);
}

struct dl_version base_next(const struct base *b, uint32_t p)
{
	struct dl_version v = b->fragment[p].version;

	v.number += v.epoch != 0;
	return v;
}

int base_read(const struct base *b, uint32_t p, float *out, struct dl_err *e)
{
	const struct dl_layout_fragment *f = &b->layout.fragment[p];
	char name[80];

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &b->layout.tensor[i];
		const struct dl_model_tensor *m =
			dl_model_find(&b->model, t->name.s, t->name.n);
		size_t bad;

		if (t->rule == DL_ALIAS)
			continue;
		if (dl_model_read_f32(&b->model, m, out + t->offset, e))
			return e->code;
		bad = dl_find_nonfinite(out + t->offset, t->elements);
		if (bad < t->elements)
			return dl_fail(e, DL_DATA,
				"%s: tensor \"%s\": element %zu is not finite",
				b->model.file[m->file].path,
				dl_scrub(name, sizeof name, t->name.s,
					t->name.n),
				bad);
	}
	return 0;
}
