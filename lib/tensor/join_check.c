#include "tensor/join.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/arith.h"

enum { MOST_NAMED = 8 }; /* missing things named in one message */

#define LOCAL UINT64_MAX

/* A record and the place that it takes in its set. */
struct part {
	const char *path;
	size_t record;
	const struct dl_header *h;
	uint64_t fragment; /* or LOCAL */
};

struct check {
	const struct dl_join *j;
	struct part *part; /* those with dl.fragment, by it */
	size_t parts;
	const struct dl_header *first; /* of all records */
	struct dl_err *e;
};

static int is(const struct dl_string *s, const char *word)
{
	return s->n == strlen(word) && !memcmp(s->s, word, s->n);
}

int dl_join_is_delta(const struct dl_header *h)
{
	const struct dl_string *kind = dl_header_meta(h, "dl.kind");

	return kind && is(kind, "delta");
}

static int check_kind(const struct check *c, const struct dl_header *h)
{
	const struct dl_string *kind = dl_header_meta(h, "dl.kind");
	char word[40];

	if (dl_join_is_delta(h) && !c->j->base)
		return dl_fail(c->e, DL_DATA, "a delta needs a base");
	if (kind && !is(kind, "params") && !is(kind, "global")
		&& !is(kind, "delta"))
		return dl_fail(c->e, DL_DATA,
			"a record of kind \"%s\" is no part of a model",
			dl_scrub(word, sizeof word, kind->s, kind->n));
	return 0;
}

/* What all records of a set have in common, where they say it. */
static int check_agrees(const struct check *c, const struct dl_header *h)
{
	static const char *const keys[] = {"dl.run", "dl.layout",
		"dl.fragments", "dl.records"};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const struct dl_string *a = dl_header_meta(c->first, keys[i]);
		const struct dl_string *b = dl_header_meta(h, keys[i]);
		char x[80], y[80];

		if (a && b && dl_string_compare(a, b))
			return dl_fail(c->e, DL_DATA,
				"%s is %s, in the first record %s", keys[i],
				dl_scrub(y, sizeof y, b->s, b->n),
				dl_scrub(x, sizeof x, a->s, a->n));
	}
	return 0;
}

static int check_layout(const struct check *c, const struct dl_header *h)
{
	const struct dl_string *hash = dl_header_meta(h, "dl.layout");
	char text[80];

	if (c->j->layout && hash && !is(hash, c->j->layout->hash))
		return dl_fail(c->e, DL_DATA, "of layout %s, not %s",
			dl_scrub(text, sizeof text, hash->s, hash->n),
			c->j->layout->hash);
	return 0;
}

static int note_part(struct check *c, const struct dl_records *file,
	size_t record)
{
	const struct dl_header *h = &file->record[record].header;
	const struct dl_string *f = dl_header_meta(h, "dl.fragment");
	struct part *p = &c->part[c->parts];

	*p = (struct part){file->path, record, h, LOCAL};
	c->parts += !!f;
	if (!f || is(f, "local"))
		return 0;
	return dl_header_meta_u64(h, "dl.fragment", &p->fragment, c->e);
}

static int check_record(struct check *c, const struct dl_records *file,
	size_t record)
{
	const struct dl_header *h = &file->record[record].header;
	int rc;

	if (!c->first)
		c->first = h;
	rc = check_kind(c, h);
	if (!rc)
		rc = check_layout(c, h);
	if (!rc)
		rc = check_agrees(c, h);
	if (!rc)
		rc = note_part(c, file, record);
	if (!rc)
		return 0;
	if (file->records > 1)
		dl_at(c->e, "record %zu", record);
	return dl_at(c->e, "%s", file->path);
}

static int by_fragment(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int dx = dl_join_is_delta(x->h), dy = dl_join_is_delta(y->h);

	if (dx != dy)
		return dx - dy;
	return x->fragment < y->fragment ? -1 : x->fragment > y->fragment;
}

static void print_part(const struct part *p, char *out, size_t size)
{
	if (p->fragment == LOCAL)
		snprintf(out, size, "the local part");
	else
		snprintf(out, size, "fragment %" PRIu64, p->fragment);
}

static int check_twice(struct check *c)
{
	char name[40], version[2][40];

	qsort(c->part, c->parts, sizeof *c->part, by_fragment);
	for (size_t i = 1; i < c->parts; i++) {
		const struct part *p = &c->part[i];

		if (by_fragment(p - 1, p))
			continue;
		print_part(p, name, sizeof name);
		for (int k = 0; k < 2; k++) {
			const struct dl_string *v = dl_header_meta(
				p[k - 1].h, "dl.version");

			dl_scrub(version[k], sizeof version[k], v ? v->s : "",
				v ? v->n : 0);
		}
		if (strcmp(version[0], version[1]))
			return dl_fail(c->e, DL_DATA,
				"%s comes twice: version %s in %s, version %s "
				"in %s",
				name, version[0], p[-1].path, version[1],
				p[0].path);
		return dl_fail(c->e, DL_DATA,
			"%s comes twice: in %s and in %s", name, p[-1].path,
			p[0].path);
	}
	return 0;
}

/* "missing: fragment 3, fragment 5 and 2 more". */
struct missing {
	struct dl_buf text;
	uint64_t count;
};

static void add_missing(struct missing *m, const char *what)
{
	if (m->count++ < MOST_NAMED)
		dl_buf_printf(&m->text, "%s%s", m->count > 1 ? ", " : "",
			what);
}

static int report_missing(struct missing *m, struct dl_err *e)
{
	int rc = 0;

	if (m->count > MOST_NAMED)
		dl_buf_printf(&m->text, " and %" PRIu64 " more",
			m->count - MOST_NAMED);
	if (m->count)
		rc = dl_fail(e, DL_DATA, "missing: %s", dl_buf_cstr(&m->text));
	dl_buf_free(&m->text);
	return rc;
}

static void add_missing_range(struct missing *m, uint64_t from, uint64_t to)
{
	char name[40];

	for (; from < to && m->count < MOST_NAMED; from++) {
		snprintf(name, sizeof name, "fragment %" PRIu64, from);
		add_missing(m, name);
	}
	if (from < to)
		m->count += to - from;
}

/* What the records say of their set: fragments 0 to P-1, and the local part
 * when there are more records than fragments. */
static int check_set(const struct check *c)
{
	uint64_t fragments, records, next = 0;
	struct missing m = {.count = 0};
	int local = 0;

	if (!c->parts || !dl_header_meta(c->part->h, "dl.fragments"))
		return 0;
	if (dl_header_meta_u64(c->part->h, "dl.fragments", &fragments, c->e)
		|| dl_header_meta_u64(c->part->h, "dl.records", &records, c->e))
		return dl_at(c->e, "%s", c->part->path);
	for (size_t i = 0; i < c->parts; i++) {
		const struct part *p = &c->part[i];

		if (p->fragment == LOCAL) {
			local = 1;
			continue;
		}
		if (p->fragment >= fragments) {
			dl_buf_free(&m.text);
			return dl_fail(c->e, DL_DATA,
				"%s: fragment %" PRIu64 " of %" PRIu64, p->path,
				p->fragment, fragments);
		}
		add_missing_range(&m, next, p->fragment);
		next = p->fragment + 1;
	}
	add_missing_range(&m, next, fragments);
	if (records > fragments && !local)
		add_missing(&m, "the local part");
	return report_missing(&m, c->e);
}

static int held(const struct check *c, const struct dl_layout_tensor *t)
{
	return t->rule == DL_ALIAS
		|| dl_model_find(c->j->parts, t->name.s, t->name.n);
}

/* What the layout wants. */
static int check_wanted(const struct check *c)
{
	const struct dl_layout *l = c->j->layout;
	struct missing m = {.count = 0};
	char text[120], name[80];

	for (uint32_t f = 0; f < l->fragments; f++) {
		const struct dl_layout_tensor *t =
			&l->tensor[l->fragment[f].first];
		const struct dl_layout_tensor *lost = NULL;
		size_t any = 0;

		for (size_t n = l->fragment[f].tensors; n--; t++) {
			if (!held(c, t))
				lost = t;
			else if (t->rule != DL_ALIAS)
				any = 1;
		}
		if (!lost)
			continue;
		if (any)
			snprintf(text, sizeof text,
				"tensor \"%s\" of fragment %u",
				dl_scrub(name, sizeof name, lost->name.s,
					lost->name.n),
				f);
		else
			snprintf(text, sizeof text, "fragment %u", f);
		add_missing(&m, text);
	}
	return report_missing(&m, c->e);
}

/* Whether tensor t can stand where rank, shape and dtype are these. */
static int check_fit(const struct check *c, const struct dl_tensor *t,
	unsigned rank, const uint64_t *shape, enum dl_dtype dtype,
	const char *where)
{
	char name[80];

	dl_scrub(name, sizeof name, t->name.s, t->name.n);
	if (t->rank != rank || memcmp(t->shape, shape, rank * sizeof *shape))
		return dl_fail(c->e, DL_DATA,
			"tensor \"%s\" has another shape than in the %s", name,
			where);
	if (t->dtype != dtype
		&& !(dl_arith_able(t->dtype) && dl_arith_able(dtype)))
		return dl_fail(c->e, DL_DATA,
			"tensor \"%s\" is %s, in the %s %s", name,
			dl_dtype_name(t->dtype), where, dl_dtype_name(dtype));
	return 0;
}

static int check_tensor(const struct check *c, const struct dl_model_tensor *t)
{
	const struct dl_records *file = &c->j->parts->file[t->file];
	const struct dl_string *s = &t->info.name;
	const struct dl_layout_tensor *l =
		c->j->layout ? dl_layout_find(c->j->layout, s->s, s->n) : NULL;
	const struct dl_model_tensor *b =
		c->j->base ? dl_model_find(c->j->base, s->s, s->n) : NULL;
	char name[80];

	dl_scrub(name, sizeof name, s->s, s->n);
	if (c->j->base && !b)
		return dl_fail(c->e, DL_DATA, "tensor \"%s\" is not in the base",
			name);
	if (dl_join_is_delta(&file->record[t->record].header)
		&& !(dl_arith_able(t->info.dtype)
			&& dl_arith_able(b->info.dtype)))
		return dl_fail(c->e, DL_DATA,
			"tensor \"%s\" is %s and cannot be added", name,
			dl_dtype_name(b->info.dtype));
	if (l && check_fit(c, &t->info, l->rank, l->shape, l->dtype, "layout"))
		return DL_DATA;
	return b ? check_fit(c, &t->info, b->info.rank, b->info.shape,
			   b->info.dtype, "base")
		 : 0;
}

static int check_all(struct check *c)
{
	struct dl_model *m = c->j->parts;
	int rc = 0;

	for (size_t f = 0; f < m->files; f++)
		for (size_t r = 0; r < m->file[f].records && !rc; r++)
			rc = check_record(c, &m->file[f], r);
	if (!rc)
		rc = check_twice(c);
	if (!rc)
		rc = dl_model_list(m, c->e);
	for (size_t i = 0; i < m->tensors && !rc; i++) {
		rc = check_tensor(c, &m->tensor[i]);
		if (rc)
			dl_at(c->e, "%s", m->file[m->tensor[i].file].path);
	}
	if (rc || c->j->base)
		return rc;
	rc = check_set(c);
	return rc || !c->j->layout ? rc : check_wanted(c);
}

int dl_join_check(const struct dl_join *j, struct dl_err *e)
{
	struct check c = {.j = j, .e = e};
	size_t records = 0;
	int rc;

	for (size_t f = 0; f < j->parts->files; f++)
		records += j->parts->file[f].records;
	c.part = dl_alloc_array(records + 1, sizeof *c.part);
	rc = check_all(&c);
	free(c.part);
	return rc;
}
