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
	unsigned char hash_key[crypto_shorthash_KEYBYTES];
	size_t slots;
	uint32_t *slot; /* a tensor, or FREE_SLOT */
};

/* What a header owns, beside the arrays that the caller sees. */
struct memory {
	char *text, *pairs;
	uint64_t *shapes;
	struct table names;
};

static void table_init(struct table *t, size_t n)
{
	t->slots = n + n / 2 + 1;
	t->slot = dl_alloc_array(t->slots, sizeof *t->slot);
	memset(t->slot, 0xff, t->slots * sizeof *t->slot);
}

/* Where the search for a name begins. */
static size_t first_slot(const struct table *t, uint32_t hash)
{
	return (size_t)((hash * (uint64_t)t->slots) >> 32);
}

static size_t next_slot(const struct table *t, size_t i)
{
	return i + 1 < t->slots ? i + 1 : 0;
}

/* Fills the table, unless a name comes twice. */
static int check_names(struct dl_scan *s, struct table *t)
{
	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *x = s->item + i, *y;
		size_t at = first_slot(t, x->hash);

		for (; t->slot[at] != FREE_SLOT; at = next_slot(t, at)) {
			y = s->item + t->slot[at];
			if (x->hash == y->hash &&
				dl_scan_same_text(s, x->key, y->key))
				return dl_scan_refuse(
					s, x->key, "its name comes twice");
		}
		t->slot[at] = (uint32_t)i;
	}
	return 0;
}

static int compare_decoded(const struct dl_scan *s, uint32_t a, uint32_t b)
{
	struct dl_json x, y;
	int c;

	dl_scan_string(s, a, &x);
	dl_scan_string(s, b, &y);
	c = memcmp(x.text, y.text, x.len < y.len ? x.len : y.len);
	if (!c)
		c = (x.len > y.len) - (x.len < y.len);
	dl_json_release(&x);
	dl_json_release(&y);
	return c;
}

/* Keys are compared where they stand; only escapes must be decoded for it. */
static int compare_keys(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_scan *s = ctx;
	const unsigned char *x = s->json.in + a + 1, *y = s->json.in + b + 1;

	while (*x == *y && *x != '"' && *x != '\\') {
		x++;
		y++;
	}
	if (*x == '\\' || *y == '\\')
		return compare_decoded(s, a, b);
	return (*x != '"' ? *x : -1) - (*y != '"' ? *y : -1);
}

/* Sorts the keys, unless one comes twice. */
static int check_keys(const struct dl_scan *s)
{
	uint32_t *temp = dl_alloc_array(s->pairs / 2, sizeof *temp);
	char shown[NAME_SHOWN];
	struct dl_json j;

	dl_sort(s->key, temp, s->pairs, compare_keys, s);
	free(temp);
	for (size_t i = 1; i < s->pairs; i++)
		if (!compare_keys(s, s->key[i - 1], s->key[i])) {
			dl_scan_string(s, s->key[i], &j);
			dl_fail(s->err, DL_DATA,
				"__metadata__: key \"%s\" comes twice",
				dl_scrub(shown, sizeof shown, j.text, j.len));
			dl_json_release(&j);
			return DL_DATA;
		}
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
static int check_offsets(struct dl_scan *s, const uint32_t *by_offset)
{
	uint64_t at = 0;

	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *t = s->item + by_offset[i];

		if (t->begin != at)
			return dl_scan_misplaced(s, t, at);
		at = t->end;
	}
	return 0;
}

/* Copies the string that begins at byte at of the JSON to *text, and moves
 * both past it. */
static struct dl_string copy_string(
	const struct dl_scan *s, size_t *at, char **text)
{
	struct dl_json j;
	struct dl_string out = {*text, 0};

	dl_scan_string(s, *at, &j);
	memcpy(*text, j.text, j.len);
	out.n = j.len;
	*text += j.len + 1;
	*at += j.at;
	dl_json_release(&j);
	return out;
}

static void build_tensors(struct dl_header *h, const struct dl_scan *s,
	const uint32_t *by_offset, struct memory *m)
{
	uint32_t *place = dl_alloc_array(s->items, sizeof *place);
	uint64_t *shape = m->shapes;
	char *text = m->text;

	h->tensors = s->items;
	h->tensor = dl_alloc_array(s->items, sizeof *h->tensor);
	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *item = s->item + by_offset[i];
		struct dl_tensor *t = h->tensor + i;
		size_t key = item->key;

		*t = (struct dl_tensor){
			.name = copy_string(s, &key, &text),
			.dtype = (enum dl_dtype)item->dtype,
			.shape = shape,
			.elements = 1,
			.offset = item->begin,
			.size = item->end - item->begin,
		};
		t->rank = dl_scan_shape(s->json.in, item, shape);
		for (unsigned d = 0; d < t->rank; d++)
			t->elements *= *shape++;
		h->data_size = item->end;
		place[by_offset[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < m->names.slots; i++)
		if (m->names.slot[i] != FREE_SLOT)
			m->names.slot[i] = place[m->names.slot[i]];
	free(place);
}

static void build_metas(
	struct dl_header *h, const struct dl_scan *s, char *text)
{
	size_t at;

	h->metas = s->pairs;
	h->meta = dl_alloc_array(s->pairs, sizeof *h->meta);
	for (size_t i = 0; i < s->pairs; i++) {
		at = s->key[i];
		h->meta[i][0] = copy_string(s, &at, &text);
		while (s->json.in[at] != '"') /* a colon, and space */
			at++;
		h->meta[i][1] = copy_string(s, &at, &text);
	}
}

/* What is between tensors: 0, or 65. */
static int keep_tensors(
	struct dl_header *h, struct dl_scan *s, struct memory *m)
{
	uint32_t *by_offset = NULL;
	int code;

	table_init(&m->names, s->items);
	code = check_names(s, &m->names);
	if (!code) {
		by_offset = dl_sorted(s->items, compare_offsets, s);
		code = check_offsets(s, by_offset);
	}
	if (!code) {
		m->text = dl_alloc(s->names);
		m->shapes = dl_alloc_array(s->dims, sizeof *m->shapes);
		build_tensors(h, s, by_offset, m);
	}
	free(by_offset);
	return code;
}

/* What is between entries. */
static int keep(struct dl_header *h, struct dl_scan *s, struct memory *m)
{
	int code = check_keys(s);

	if (!code)
		code = keep_tensors(h, s, m);
	if (!code) {
		m->pairs = dl_alloc(s->pair_text);
		build_metas(h, s, m->pairs);
	}
	return code;
}

int dl_header_parse(
	struct dl_header *h, const void *json, size_t n, struct dl_err *e)
{
	struct dl_err own;
	struct dl_scan s = {.err = e ? e : &own};
	struct memory *m;
	int code;

	*h = (struct dl_header){.header_size = n};
	if (n >= UINT32_MAX)
		return dl_fail(e, DL_DATA, "header of %zu bytes", n);
	h->memory = m = dl_alloc(sizeof *m);
	randombytes_buf(m->names.hash_key, sizeof m->names.hash_key);
	s.hash_key = m->names.hash_key;
	code = dl_scan_header(&s, json, n);
	if (!code)
		code = keep(h, &s, m);
	free(s.item);
	free(s.key);
	if (code)
		dl_header_release(h);
	return code;
}

void dl_header_release(struct dl_header *h)
{
	struct memory *m = h->memory;

	if (m) {
		free(m->text);
		free(m->pairs);
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

	size_t at = first_slot(t, dl_scan_hash(t->hash_key, name, n));

	for (; t->slot[at] != FREE_SLOT; at = next_slot(t, at)) {
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

const struct dl_string *dl_header_meta_find(
	const struct dl_header *h, const char *key, size_t n)
{
	size_t low = 0, high = h->metas;

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

const struct dl_string *dl_header_meta(
	const struct dl_header *h, const char *key)
{
	return dl_header_meta_find(h, key, strlen(key));
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
