#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sort.h"
#include "tensor/record.h"

/* A tensor or a pair as it was added; its text and shape are in names. */
struct entry {
	size_t name, name_n;
	size_t more, more_n; /* shape and rank, or value and its length */
	enum dl_dtype dtype;
};

static size_t keep(struct dl_writer *w, const void *p, size_t n)
{
	size_t at = w->names.len;

	dl_buf_add(&w->names, p, n);
	return at;
}

void dl_writer_meta_pair(struct dl_writer *w, const void *key, size_t key_n,
	const void *value, size_t value_n)
{
	struct entry m = {.name_n = key_n, .more_n = value_n};

	m.name = keep(w, key, key_n);
	m.more = keep(w, value, value_n);
	dl_buf_add(&w->metas, &m, sizeof m);
}

void dl_writer_meta_n(
	struct dl_writer *w, const char *key, const char *value, size_t n)
{
	dl_writer_meta_pair(w, key, strlen(key), value, n);
}

void dl_writer_meta(struct dl_writer *w, const char *key, const char *value)
{
	dl_writer_meta_n(w, key, value, strlen(value));
}

void dl_writer_meta_u64(struct dl_writer *w, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, value);
	dl_writer_meta(w, key, text);
}

size_t dl_writer_tensor(struct dl_writer *w, const char *name, size_t n,
	enum dl_dtype dtype, unsigned rank, const uint64_t *shape)
{
	struct entry t = {.name_n = n, .more_n = rank, .dtype = dtype};

	t.name = keep(w, name, n);
	t.more = keep(w, shape, rank * sizeof *shape);
	dl_buf_add(&w->entries, &t, sizeof t);
	return w->tensors++;
}

static struct entry entry_of(const struct dl_buf *entries, size_t i)
{
	struct entry t;

	memcpy(&t, entries->data + i * sizeof t, sizeof t);
	return t;
}

struct dl_string dl_writer_name(const struct dl_writer *w, size_t handle)
{
	struct entry t = entry_of(&w->entries, handle);

	return (struct dl_string){(const char *)w->names.data + t.name, t.name_n};
}

/* Appends entry i of another writer, whose more are so many bytes. */
static void copy(struct dl_writer *w, struct dl_buf *to,
	const struct dl_writer *from, struct entry t, size_t more)
{
	t.name = keep(w, from->names.data + t.name, t.name_n);
	t.more = keep(w, from->names.data + t.more, more);
	dl_buf_add(to, &t, sizeof t);
}

size_t dl_writer_copy_tensor(
	struct dl_writer *w, const struct dl_writer *from, size_t handle)
{
	struct entry t = entry_of(&from->entries, handle);

	copy(w, &w->entries, from, t, t.more_n * sizeof(uint64_t));
	return w->tensors++;
}

void dl_writer_copy_metas(struct dl_writer *w, const struct dl_writer *from)
{
	for (size_t i = 0; i < from->metas.len / sizeof(struct entry); i++) {
		struct entry m = entry_of(&from->metas, i);

		copy(w, &w->metas, from, m, m.more_n);
	}
}

struct list {
	const unsigned char *text;
	const struct entry *entry;
};

static int compare(const void *ctx, uint32_t a, uint32_t b)
{
	const struct list *l = ctx;
	const struct entry *x = l->entry + a, *y = l->entry + b;
	size_t n = x->name_n < y->name_n ? x->name_n : y->name_n;
	int c;

	if (x->dtype != y->dtype)
		return x->dtype > y->dtype ? -1 : 1;
	c = n ? memcmp(l->text + x->name, l->text + y->name, n) : 0;
	return c ? c : (x->name_n > y->name_n) - (x->name_n < y->name_n);
}

static void add_text(
	struct dl_buf *out, const struct list *l, size_t at, size_t n)
{
	dl_json_quote(out, (const char *)l->text + at, n);
}

static void add_metas(struct dl_buf *out, const struct list *l, size_t n)
{
	uint32_t *order = dl_sorted(n, compare, l);

	dl_buf_str(out, "\"__metadata__\":{");
	for (size_t i = 0; i < n; i++) {
		const struct entry *m = l->entry + order[i];

		if (i)
			dl_buf_byte(out, ',');
		add_text(out, l, m->name, m->name_n);
		dl_buf_byte(out, ':');
		add_text(out, l, m->more, m->more_n);
	}
	dl_buf_byte(out, '}');
	free(order);
}

static void add_tensor(struct dl_buf *out, const struct list *l,
	const struct entry *t, uint64_t *at)
{
	uint64_t bits = dl_dtype_bits(t->dtype), d;

	add_text(out, l, t->name, t->name_n);
	dl_buf_printf(
		out, ":{\"dtype\":\"%s\",\"shape\":[", dl_dtype_name(t->dtype));
	for (size_t i = 0; i < t->more_n; i++) {
		memcpy(&d, l->text + t->more + i * sizeof d, sizeof d);
		bits *= d;
		dl_buf_printf(out, "%s%" PRIu64, i ? "," : "", d);
	}
	assert(bits % 8 == 0);
	dl_buf_printf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", *at,
		*at + bits / 8);
	*at += bits / 8;
}

void dl_writer_finish(struct dl_writer *w, struct dl_buf *out, size_t *order)
{
	struct list metas = {w->names.data, (const void *)w->metas.data};
	struct list tensors = {w->names.data, (const void *)w->entries.data};
	size_t start = out->len, pairs = w->metas.len / sizeof(struct entry);
	uint32_t *index = dl_sorted(w->tensors, compare, &tensors);
	uint64_t at = 0;

	dl_buf_add(out, (unsigned char[8]){0}, 8);
	dl_buf_byte(out, '{');
	if (pairs)
		add_metas(out, &metas, pairs);
	for (size_t i = 0; i < w->tensors; i++) {
		if (i || pairs)
			dl_buf_byte(out, ',');
		add_tensor(out, &tensors, tensors.entry + index[i], &at);
		if (order)
			order[i] = index[i];
	}
	dl_buf_byte(out, '}');
	while ((out->len - start) % 8)
		dl_buf_byte(out, ' ');
	dl_put_le64(out->data + start, out->len - start - 8);
	free(index);
}

void dl_writer_release(struct dl_writer *w)
{
	dl_buf_free(&w->names);
	dl_buf_free(&w->entries);
	dl_buf_free(&w->metas);
	w->tensors = 0;
}
