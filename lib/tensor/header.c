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
	char *text, *pairs;
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

/* The string that begins at byte at of the header; the caller releases j. */
static void read_string(struct dl_json *j, const struct dl_scan *s, size_t at)
{
	dl_json_init(j, s->json.in + at, s->json.n - at, NULL);
	dl_json_next(j);
}

static int compare_decoded(const struct dl_scan *s, uint32_t a, uint32_t b)
{
	struct dl_json x, y;
	int c;

	read_string(&x, s, a);
	read_string(&y, s, b);
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
			read_string(&j, s, s->key[i]);
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

static void build_tensors(struct dl_header *h, const struct dl_scan *s,
	const uint32_t *by_offset, struct memory *m)
{
	uint32_t *place = dl_alloc_array(s->items, sizeof *place);
	uint64_t *shape = m->shapes;

	h->tensors = s->items;
	h->tensor = dl_alloc_array(s->items, sizeof *h->tensor);
	for (size_t i = 0; i < s->items; i++) {
		const struct dl_scan_item *item = s->item + by_offset[i];
		struct dl_tensor *t = h->tensor + i;

		*t = (struct dl_tensor){
			.name = {s->text + item->name, item->name_n},
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

/* Copies the string that j has just read to *text, which moves on. */
static struct dl_string copy_string(const struct dl_json *j, char **text)
{
	struct dl_string out = {*text, j->len};

	memcpy(*text, j->text, j->len + 1);
	*text += j->len + 1;
	return out;
}

static void build_metas(
	struct dl_header *h, const struct dl_scan *s, char *text)
{
	struct dl_json j;
	size_t at;

	h->metas = s->pairs;
	h->meta = dl_alloc_array(s->pairs, sizeof *h->meta);
	for (size_t i = 0; i < s->pairs; i++) {
		read_string(&j, s, s->key[i]);
		h->meta[i][0] = copy_string(&j, &text);
		at = s->key[i] + j.at;
		dl_json_release(&j);
		while (s->json.in[at] != '"') /* a colon, and space */
			at++;
		read_string(&j, s, at);
		h->meta[i][1] = copy_string(&j, &text);
		dl_json_release(&j);
	}
}

/* What is between tensors: 0, or 65; h takes s's text when they are fine. */
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
		m->shapes = dl_alloc_array(s->dims, sizeof *m->shapes);
		build_tensors(h, s, by_offset, m);
	}
	free(by_offset);
	return code;
}

/* The second walk, then what is between entries. */
static int keep(
	struct dl_header *h, struct dl_scan *s, const void *json, size_t n)
{
	struct memory *m = dl_alloc(sizeof *m);
	int code;

	h->memory = m;
	s->item = dl_alloc_array(s->items, sizeof *s->item);
	s->key = dl_alloc_array(s->pairs, sizeof *s->key);
	s->text = m->text = dl_alloc(s->text_n);
	code = dl_scan_header(s, json, n);
	if (!code)
		code = check_keys(s);
	if (!code)
		code = keep_tensors(h, s, m);
	free(s->item);
	if (!code) {
		m->pairs = dl_alloc(s->pair_text);
		build_metas(h, s, m->pairs);
	}
	free(s->key);
	if (code)
		dl_header_release(h);
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
