#include <inttypes.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "tensor/record.h"
#include "tensor/scan.h"

enum { NAME_SHOWN = 120, FREE_SLOT = UINT32_MAX };

/*
 * Names by hash: open addressing in half as many slots again as there are
 * tensors. The hash is keyed by chance, so that nobody can make names collide.
 */
struct table {
	unsigned char key[crypto_shorthash_KEYBYTES];
	size_t slots;
	uint32_t *slot; /* a tensor, or FREE_SLOT */
};

/* What a header owns, beside the arrays that the caller sees. */
struct memory {
	char *text;
	uint64_t *shapes;
	struct table names;
};

static void table_init(struct table *t, size_t n)
{
	randombytes_buf(t->key, sizeof t->key);
	t->slots = n + n / 2 + 1;
	t->slot = dl_alloc_array(t->slots, sizeof *t->slot);
	memset(t->slot, 0xff, t->slots * sizeof *t->slot);
}

/* Where the search for a name begins. */
static size_t first_slot(const struct table *t, const char *name, size_t n)
{
	unsigned char hash[crypto_shorthash_BYTES];

	crypto_shorthash(hash, (const unsigned char *)name, n, t->key);
	return (size_t)(((uint64_t)dl_le32(hash) * t->slots) >> 32);
}

static size_t next_slot(const struct table *t, size_t i)
{
	return i + 1 < t->slots ? i + 1 : 0;
}

static const char *shown_text(
	const struct dl_scan *s, uint32_t at, uint32_t n, char out[NAME_SHOWN])
{
	return dl_scrub(out, NAME_SHOWN, s->text + at, n);
}

/* Fills the table, unless a name comes twice. */
static int check_names(const struct dl_scan *s, struct table *t)
{
	char shown[NAME_SHOWN];

	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *x = s->item + i, *y;
		size_t at = first_slot(t, s->text + x->name, x->name_n);

		for (; t->slot[at] != FREE_SLOT; at = next_slot(t, at)) {
			y = s->item + t->slot[at];
			if (x->name_n == y->name_n &&
				!memcmp(s->text + x->name, s->text + y->name,
					x->name_n))
				return dl_fail(s->err, DL_DATA,
					"tensor \"%s\": its name comes twice",
					shown_text(
						s, x->name, x->name_n, shown));
		}
		t->slot[at] = (uint32_t)i;
	}
	return 0;
}

static int compare_keys(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_scan *s = ctx;
	const struct dl_scan_pair *x = s->pair + a, *y = s->pair + b;
	uint32_t n = x->key_n < y->key_n ? x->key_n : y->key_n;
	int c = memcmp(s->text + x->key, s->text + y->key, n);

	return c ? c : (x->key_n > y->key_n) - (x->key_n < y->key_n);
}

static int check_keys(const struct dl_scan *s, const uint32_t *by_key)
{
	char shown[NAME_SHOWN];

	for (size_t i = 1; i < s->pairs; i++)
		if (!compare_keys(s, by_key[i - 1], by_key[i]))
			return dl_fail(s->err, DL_DATA,
				"__metadata__: key \"%s\" comes twice",
				shown_text(s, s->pair[by_key[i]].key,
					s->pair[by_key[i]].key_n, shown));
	return 0;
}

/* An empty tensor goes before the one that begins where it lies. */
static int compare_offsets(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_scan *s = ctx;
	const struct dl_scan_item *x = s->item + a, *y = s->item + b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* Each tensor begins where the one before it ends: no hole, no overlap. */
static int check_offsets(const struct dl_scan *s, const uint32_t *by_offset)
{
	uint64_t at = 0;
	char shown[NAME_SHOWN];

	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *t = s->item + by_offset[i];

		if (t->begin != at)
			return dl_fail(s->err, DL_DATA,
				"tensor \"%s\": begins at byte %" PRIu64
				" of the data, %s %" PRIu64,
				shown_text(s, t->name, t->name_n, shown),
				t->begin,
				t->begin < at ? "overlapping what ends at"
					      : "leaving a hole from",
				at);
		at = t->end;
	}
	return 0;
}

/* What the checks between entries find out. */
struct order {
	uint32_t *by_offset, *by_key, *temp;
	struct table names;
};

static int check(const struct dl_scan *s, struct order *o)
{
	int code = check_names(s, &o->names);

	if (code)
		return code;
	dl_sort_index(o->by_offset, o->temp, s->items, compare_offsets, s);
	code = check_offsets(s, o->by_offset);
	if (code)
		return code;
	dl_sort_index(o->by_key, o->temp, s->pairs, compare_keys, s);
	return check_keys(s, o->by_key);
}

static void build_tensors(struct dl_header *h, const struct dl_scan *s,
	const void *json, const struct order *o, uint64_t *shape)
{
	h->tensors = s->items;
	h->tensor = dl_alloc_array(s->items, sizeof *h->tensor);
	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *item = s->item + o->by_offset[i];
		struct dl_tensor *t = h->tensor + i;

		*t = (struct dl_tensor){
			.name = {s->text + item->name, item->name_n},
			.dtype = (enum dl_dtype)item->dtype,
			.shape = shape,
			.elements = 1,
			.offset = item->begin,
			.size = item->end - item->begin,
		};
		t->rank = dl_scan_shape(json, item, shape);
		for (unsigned d = 0; d < t->rank; d++)
			t->elements *= *shape++;
		h->data_size = item->end;
		o->temp[o->by_offset[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < o->names.slots; i++)
		if (o->names.slot[i] != FREE_SLOT)
			o->names.slot[i] = o->temp[o->names.slot[i]];
}

static void build_metas(
	struct dl_header *h, const struct dl_scan *s, const struct order *o)
{
	h->metas = s->pairs;
	h->meta = dl_alloc_array(s->pairs, sizeof *h->meta);
	for (size_t i = 0; i < s->pairs; i++) {
		const struct dl_scan_pair *p = s->pair + o->by_key[i];

		h->meta[i][0] = (struct dl_string){s->text + p->key, p->key_n};
		h->meta[i][1] =
			(struct dl_string){s->text + p->value, p->value_n};
	}
}

/* Makes the caller's view, which keeps s's text and o's names. */
static void build(struct dl_header *h, const struct dl_scan *s,
	const void *json, const struct order *o)
{
	struct memory *m = dl_alloc(sizeof *m);

	m->text = s->text;
	m->names = o->names;
	m->shapes = dl_alloc_array(s->dims, sizeof *m->shapes);
	h->memory = m;
	build_tensors(h, s, json, o, m->shapes);
	build_metas(h, s, o);
}

/* The second walk, what lies between entries, and the result. */
static int keep(
	struct dl_header *h, struct dl_scan *s, const void *json, size_t n)
{
	size_t items = s->items, pairs = s->pairs;
	struct order o;
	int code;

	s->item = dl_alloc_array(items, sizeof *s->item);
	s->pair = dl_alloc_array(pairs, sizeof *s->pair);
	s->text = dl_alloc(s->text_n);
	o.by_offset = dl_alloc_array(items, sizeof *o.by_offset);
	o.by_key = dl_alloc_array(pairs, sizeof *o.by_key);
	o.temp = dl_alloc_array(items > pairs ? items : pairs, sizeof *o.temp);
	table_init(&o.names, items);
	code = dl_scan_header(s, json, n);
	if (!code)
		code = check(s, &o);
	if (!code) {
		build(h, s, json, &o);
	} else {
		free(s->text);
		free(o.names.slot);
	}
	free(s->item);
	free(s->pair);
	free(o.by_offset);
	free(o.by_key);
	free(o.temp);
	return code;
}

int dl_header_parse(
	struct dl_header *h, const void *json, size_t n, struct dl_err *e)
{
	struct dl_err own;
	struct dl_scan s = {.err = e ? e : &own};
	int code;

	*h = (struct dl_header){.header_size = n};
	if (n >= UINT32_MAX)
		return dl_fail(e, DL_DATA, "header of %zu bytes", n);
	code = dl_scan_header(&s, json, n);
	return code ? code : keep(h, &s, json, n);
}

void dl_header_release(struct dl_header *h)
{
	struct memory *m = h->memory;

	if (m) {
		free(m->text);
		free(m->shapes);
		free(m->names.slot);
		free(m);
	}
	free(h->tensor);
	free(h->meta);
	*h = (struct dl_header){0};
}

const struct dl_tensor *dl_header_find(
	const struct dl_header *h, const char *name, size_t n)
{
	const struct memory *m = h->memory;
	const struct table *t = &m->names;

	for (size_t at = first_slot(t, name, n); t->slot[at] != FREE_SLOT;
		at = next_slot(t, at)) {
		const struct dl_tensor *tensor = h->tensor + t->slot[at];

		if (tensor->name.n == n && !memcmp(tensor->name.s, name, n))
			return tensor;
	}
	return NULL;
}

static int compare_key(const struct dl_string *a, const char *key, size_t n)
{
	int c = memcmp(a->s, key, a->n < n ? a->n : n);

	return c ? c : (a->n > n) - (a->n < n);
}

const struct dl_string *dl_header_meta(
	const struct dl_header *h, const char *key)
{
	size_t low = 0, high = h->metas, n = strlen(key);

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = compare_key(&h->meta[mid][0], key, n);

		if (!c)
			return &h->meta[mid][1];
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

int dl_header_meta_u64(const struct dl_header *h, const char *key,
	uint64_t *out, struct dl_err *e)
{
	const struct dl_string *v = dl_header_meta(h, key);
	uint64_t u = 0;

	if (!v)
		return dl_fail(e, DL_DATA, "%s is missing", key);
	for (size_t i = 0; i < v->n; i++) {
		unsigned d = (unsigned char)v->s[i] - '0';

		if (d > 9 || u > (UINT64_MAX - d) / 10)
			return dl_fail(e, DL_DATA,
				"%s is not an integer of 64 bits", key);
		u = u * 10 + d;
	}
	if (!v->n)
		return dl_fail(e, DL_DATA, "%s is empty", key);
	*out = u;
	return 0;
}
