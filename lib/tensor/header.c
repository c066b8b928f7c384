#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/sort.h"
#include "tensor/record.h"

/*
 * The JSON is walked twice: once to check every entry by itself and to count,
 * once to keep what the checks between entries need. That is less than the
 * JSON takes (an entry has 50 bytes at least, and 45 and its name are kept), so
 * a header that is refused never costs more than it weighs. Only then is the
 * header made that the caller sees.
 */
struct item {
	uint64_t begin, end;
	uint32_t name, name_n; /* in text */
	uint32_t shape;	       /* where it begins in the JSON */
	uint32_t dtype;
};

struct pair {
	uint32_t key, key_n, value, value_n; /* in text */
};

struct scan {
	struct dl_json json;
	struct dl_err *err;
	struct item *item; /* NULL while counting, as pair and text */
	struct pair *pair;
	char *text; /* every name, key and value with a NUL after it */
	size_t items, pairs, dims, text_n;
	size_t entry; /* where the key of the current entry begins */
};

/* What a header owns, beside the arrays that the caller sees. */
struct memory {
	char *text;
	uint64_t *shapes;
	uint32_t *by_name; /* tensors in byte order of names */
};

enum { MAX_EXTRA = 32, NAME_SHOWN = 120 };

/* "tensor NAME: fact", of the entry whose key begins at byte entry. */
static int refuse(struct scan *s, const char *fact)
{
	struct dl_json name;
	char shown[NAME_SHOWN];

	dl_json_init(&name, s->json.in + s->entry, s->json.n - s->entry, NULL);
	dl_json_next(&name);
	dl_scrub(shown, sizeof shown, name.text, name.len);
	dl_json_release(&name);
	return dl_fail(s->err, DL_DATA, "tensor \"%s\": %s", shown, fact);
}

/* As refuse, for what the JSON parser found in this entry. */
static int refuse_json(struct scan *s)
{
	struct dl_err inner = *s->err;

	return refuse(s, inner.text);
}

static int text_is(const struct dl_json *j, const char *s)
{
	return j->len == strlen(s) && !memcmp(j->text, s, j->len);
}

/* Keeps the current string; returns where in text it begins. */
static uint32_t keep_text(struct scan *s, uint32_t *n)
{
	size_t at = s->text_n;

	if (s->text)
		memcpy(s->text + at, s->json.text, s->json.len);
	s->text_n += s->json.len + 1;
	*n = (uint32_t)s->json.len;
	return (uint32_t)at;
}

/* The shape's product, left to right; it counts dimensions. */
static int scan_shape(struct scan *s, uint64_t *elements, unsigned *rank)
{
	enum dl_json_token t = dl_json_next(&s->json);
	uint64_t d;

	if (t == DL_JSON_BAD)
		return refuse_json(s);
	if (t != DL_JSON_ARRAY)
		return refuse(s, "shape is not an array");
	*elements = 1;
	*rank = 0;
	while ((t = dl_json_next(&s->json)) != DL_JSON_ARRAY_END) {
		if (t == DL_JSON_BAD)
			return refuse_json(s);
		if (t != DL_JSON_NUMBER)
			return refuse(s, "a dimension is not a number");
		if (dl_json_u64(&s->json, &d))
			return refuse_json(s);
		if (__builtin_mul_overflow(*elements, d, elements))
			return refuse(s, "product of shape overflows");
		++*rank;
	}
	return 0;
}

static int scan_offsets(struct scan *s, uint64_t *begin, uint64_t *end)
{
	static const char wrong[] = "data_offsets are not two integers";
	enum dl_json_token t = dl_json_next(&s->json);
	uint64_t *out[] = {begin, end};

	if (t == DL_JSON_BAD)
		return refuse_json(s);
	if (t != DL_JSON_ARRAY)
		return refuse(s, wrong);
	for (int i = 0; i < 2; i++) {
		t = dl_json_next(&s->json);
		if (t == DL_JSON_BAD)
			return refuse_json(s);
		if (t != DL_JSON_NUMBER)
			return refuse(s, wrong);
		if (dl_json_u64(&s->json, out[i]))
			return refuse_json(s);
	}
	t = dl_json_next(&s->json);
	if (t == DL_JSON_BAD)
		return refuse_json(s);
	return t == DL_JSON_ARRAY_END ? 0 : refuse(s, wrong);
}

static int scan_dtype(struct scan *s, enum dl_dtype *dtype)
{
	enum dl_json_token t = dl_json_next(&s->json);

	if (t == DL_JSON_BAD)
		return refuse_json(s);
	if (t != DL_JSON_STRING)
		return refuse(s, "dtype is not a string");
	if (dl_dtype_parse(s->json.text, s->json.len, dtype))
		return refuse(s, "unknown dtype");
	return 0;
}

/* Does the key that begins at byte at mean the same as the current one? */
static int same_key(struct scan *s, size_t at)
{
	struct dl_json j;
	int same;

	dl_json_init(&j, s->json.in + at, s->json.n - at, NULL);
	dl_json_next(&j);
	same = j.len == s->json.len && !memcmp(j.text, s->json.text, j.len);
	dl_json_release(&j);
	return same;
}

struct entry {
	enum dl_dtype dtype;
	unsigned rank, extras;
	int has; /* bits of the fields seen */
	uint64_t elements, begin, end;
	size_t shape;
	size_t extra[MAX_EXTRA]; /* where the keys of other fields begin */
};

/* A field that we do not know: its value may be anything. */
static int scan_extra(struct scan *s, struct entry *t)
{
	for (unsigned i = 0; i < t->extras; i++)
		if (same_key(s, t->extra[i]))
			return refuse(s, "a field comes twice");
	if (t->extras == MAX_EXTRA)
		return refuse(s, "too many unknown fields");
	t->extra[t->extras++] = s->json.offset;
	return dl_json_skip(&s->json, dl_json_next(&s->json)) ? refuse_json(s)
							      : 0;
}

static int scan_field(struct scan *s, struct entry *t)
{
	enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
	int field = text_is(&s->json, "dtype")		? DTYPE
		    : text_is(&s->json, "shape")	? SHAPE
		    : text_is(&s->json, "data_offsets") ? OFFSETS
							: 0;

	if (t->has & field)
		return refuse(s, "a field comes twice");
	t->has |= field;
	if (field == DTYPE)
		return scan_dtype(s, &t->dtype);
	if (field == OFFSETS)
		return scan_offsets(s, &t->begin, &t->end);
	if (field != SHAPE)
		return scan_extra(s, t);
	t->shape = s->json.at;
	return scan_shape(s, &t->elements, &t->rank);
}

/* What an entry says about itself must agree. */
static int check_entry(struct scan *s, const struct entry *t)
{
	uint64_t bits;

	if (t->has != 7)
		return refuse(s, "dtype, shape or data_offsets is missing");
	if (__builtin_mul_overflow(t->elements, dl_dtype_bits(t->dtype), &bits))
		return refuse(s, "size of shape and dtype overflows");
	if (bits % 8)
		return refuse(s, "not a whole number of bytes");
	if (t->end < t->begin)
		return refuse(s, "data_offsets run backwards");
	if (t->end - t->begin != bits / 8)
		return refuse(s, "data_offsets do not fit shape and dtype");
	return 0;
}

static int scan_entry(struct scan *s)
{
	struct item *item = s->item ? s->item + s->items : NULL;
	struct entry entry = {.has = 0};
	enum dl_json_token t;
	uint32_t n, name = keep_text(s, &n);
	int code;

	s->entry = s->json.offset;
	t = dl_json_next(&s->json);
	if (t == DL_JSON_BAD)
		return refuse_json(s);
	if (t != DL_JSON_OBJECT)
		return refuse(s, "its entry is not an object");
	while ((t = dl_json_next(&s->json)) == DL_JSON_KEY) {
		code = scan_field(s, &entry);
		if (code)
			return code;
	}
	if (t == DL_JSON_BAD)
		return refuse_json(s);
	code = check_entry(s, &entry);
	if (item)
		*item = (struct item){entry.begin, entry.end, name, n,
			(uint32_t)entry.shape, entry.dtype};
	s->items++;
	s->dims += entry.rank;
	return code;
}

static int scan_metadata(struct scan *s)
{
	enum dl_json_token t = dl_json_next(&s->json);
	struct pair pair;

	if (t == DL_JSON_BAD)
		return s->err->code;
	if (t != DL_JSON_OBJECT)
		return dl_fail(
			s->err, DL_DATA, "__metadata__ is not an object");
	while ((t = dl_json_next(&s->json)) == DL_JSON_KEY) {
		pair.key = keep_text(s, &pair.key_n);
		t = dl_json_next(&s->json);
		if (t == DL_JSON_BAD)
			return s->err->code;
		if (t != DL_JSON_STRING)
			return dl_fail(s->err, DL_DATA,
				"__metadata__ holds a value that is not a "
				"string (JSON byte %zu)",
				s->json.offset);
		pair.value = keep_text(s, &pair.value_n);
		if (s->pair)
			s->pair[s->pairs] = pair;
		s->pairs++;
	}
	return t == DL_JSON_BAD ? s->err->code : 0;
}

/* One member of the top object, whose key was just read. */
static int scan_member(struct scan *s, int *metadata)
{
	if (!text_is(&s->json, "__metadata__"))
		return scan_entry(s);
	if ((*metadata)++)
		return dl_fail(s->err, DL_DATA, "__metadata__ comes twice");
	return scan_metadata(s);
}

static int scan_top(struct scan *s)
{
	enum dl_json_token t = dl_json_next(&s->json);
	int metadata = 0, code;

	if (t != DL_JSON_OBJECT && t != DL_JSON_BAD)
		return dl_fail(s->err, DL_DATA, "not a JSON object");
	while (t != DL_JSON_BAD && t != DL_JSON_END) {
		t = dl_json_next(&s->json);
		if (t != DL_JSON_KEY)
			continue;
		code = scan_member(s, &metadata);
		if (code)
			return code;
	}
	return t == DL_JSON_BAD ? s->err->code : 0;
}

/* One walk over the JSON: counts, and keeps what there is room for. */
static int scan(struct scan *s, const void *json, size_t n)
{
	int code;

	s->items = s->pairs = s->dims = s->text_n = 0;
	dl_json_init(&s->json, json, n, s->err);
	code = scan_top(s);
	dl_json_release(&s->json);
	return code;
}

static int compare_text(
	const char *text, uint32_t a, uint32_t a_n, uint32_t b, uint32_t b_n)
{
	int c = memcmp(text + a, text + b, a_n < b_n ? a_n : b_n);

	return c ? c : (a_n > b_n) - (a_n < b_n);
}

static int compare_names(const void *ctx, uint32_t a, uint32_t b)
{
	const struct scan *s = ctx;
	const struct item *x = s->item + a, *y = s->item + b;

	return compare_text(s->text, x->name, x->name_n, y->name, y->name_n);
}

static int compare_keys(const void *ctx, uint32_t a, uint32_t b)
{
	const struct scan *s = ctx;
	const struct pair *x = s->pair + a, *y = s->pair + b;

	return compare_text(s->text, x->key, x->key_n, y->key, y->key_n);
}

/* An empty tensor goes before the one that begins where it lies. */
static int compare_offsets(const void *ctx, uint32_t a, uint32_t b)
{
	const struct scan *s = ctx;
	const struct item *x = s->item + a, *y = s->item + b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return compare_names(ctx, a, b);
}

static const char *shown_text(
	const struct scan *s, uint32_t at, uint32_t n, char out[NAME_SHOWN])
{
	return dl_scrub(out, NAME_SHOWN, s->text + at, n);
}

static int check_names(const struct scan *s, const uint32_t *by_name)
{
	char shown[NAME_SHOWN];

	for (size_t i = 1; i < s->items; i++)
		if (!compare_names(s, by_name[i - 1], by_name[i]))
			return dl_fail(s->err, DL_DATA,
				"tensor \"%s\": its name comes twice",
				shown_text(s, s->item[by_name[i]].name,
					s->item[by_name[i]].name_n, shown));
	return 0;
}

static int check_keys(const struct scan *s, const uint32_t *by_key)
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

/* Each tensor begins where the one before it ends: no hole, no overlap. */
static int check_offsets(const struct scan *s, const uint32_t *by_offset)
{
	uint64_t at = 0;
	char shown[NAME_SHOWN];

	for (size_t i = 0; i < s->items; i++) {
		const struct item *t = s->item + by_offset[i];

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

/* The dimensions at byte at of the JSON, which were checked before. */
static unsigned read_shape(const unsigned char *json, size_t at, uint64_t *out)
{
	unsigned rank = 0;
	int inside = 0;

	while (json[at] != '[')
		at++;
	for (at++; json[at] != ']'; at++)
		if (json[at] < '0' || json[at] > '9') {
			inside = 0;
		} else {
			if (!inside)
				out[rank++] = 0;
			inside = 1;
			out[rank - 1] = out[rank - 1] * 10 + (json[at] - '0');
		}
	return rank;
}

static void build_tensor(struct dl_tensor *t, const struct scan *s,
	const struct item *item, const unsigned char *json, uint64_t *shape)
{
	*t = (struct dl_tensor){
		.name = {s->text + item->name, item->name_n},
		.dtype = (enum dl_dtype)item->dtype,
		.shape = shape,
		.elements = 1,
		.offset = item->begin,
		.size = item->end - item->begin,
	};
	t->rank = read_shape(json, item->shape, shape);
	for (unsigned i = 0; i < t->rank; i++)
		t->elements *= shape[i];
}

/* Makes the caller's view; takes text and by_name from s. by_offset becomes
 * the map from items to tensors. */
static void build(struct dl_header *h, struct scan *s,
	const unsigned char *json, uint32_t *by_name, uint32_t *by_offset,
	uint32_t *temp, const uint32_t *by_key)
{
	struct memory *m = dl_alloc(sizeof *m);
	uint64_t *shape;

	shape = dl_alloc_array(s->dims, sizeof *shape);
	*m = (struct memory){s->text, shape, by_name};
	h->memory = m;
	h->tensors = s->items;
	h->tensor = dl_alloc_array(s->items, sizeof *h->tensor);
	for (size_t i = 0; i < s->items; i++) {
		build_tensor(
			h->tensor + i, s, s->item + by_offset[i], json, shape);
		shape += h->tensor[i].rank;
		temp[by_offset[i]] = (uint32_t)i;
	}
	for (size_t i = 0; i < s->items; i++)
		by_name[i] = temp[by_name[i]];
	if (s->items)
		h->data_size = h->tensor[s->items - 1].offset +
			       h->tensor[s->items - 1].size;
	h->metas = s->pairs;
	h->meta = dl_alloc_array(s->pairs, sizeof *h->meta);
	for (size_t i = 0; i < s->pairs; i++) {
		const struct pair *p = s->pair + by_key[i];

		h->meta[i][0] = (struct dl_string){s->text + p->key, p->key_n};
		h->meta[i][1] =
			(struct dl_string){s->text + p->value, p->value_n};
	}
}

/* The second walk and the checks between entries. */
static int finish(
	struct dl_header *h, struct scan *s, const void *json, size_t n)
{
	size_t items = s->items, pairs = s->pairs;
	uint32_t *by_name, *by_offset, *by_key, *temp;
	int code;

	s->item = dl_alloc_array(items, sizeof *s->item);
	s->pair = dl_alloc_array(pairs, sizeof *s->pair);
	s->text = dl_alloc(s->text_n);
	by_name = dl_alloc_array(items, sizeof *by_name);
	by_offset = dl_alloc_array(items, sizeof *by_offset);
	by_key = dl_alloc_array(pairs, sizeof *by_key);
	temp = dl_alloc_array(items > pairs ? items : pairs, sizeof *temp);
	code = scan(s, json, n);
	dl_sort_index(by_name, temp, items, compare_names, s);
	dl_sort_index(by_offset, temp, items, compare_offsets, s);
	dl_sort_index(by_key, temp, pairs, compare_keys, s);
	if (!code)
		code = check_names(s, by_name);
	if (!code)
		code = check_keys(s, by_key);
	if (!code)
		code = check_offsets(s, by_offset);
	if (!code) {
		build(h, s, json, by_name, by_offset, temp, by_key);
	} else {
		free(s->text);
		free(by_name);
	}
	free(by_offset);
	free(by_key);
	free(temp);
	free(s->item);
	free(s->pair);
	return code;
}

int dl_header_parse(
	struct dl_header *h, const void *json, size_t n, struct dl_err *e)
{
	struct dl_err own;
	struct scan s = {.err = e ? e : &own};
	int code;

	*h = (struct dl_header){.header_size = n};
	if (n > UINT32_MAX)
		return dl_fail(e, DL_DATA, "header of %zu bytes", n);
	code = scan(&s, json, n);
	return code ? code : finish(h, &s, json, n);
}

void dl_header_release(struct dl_header *h)
{
	struct memory *m = h->memory;

	if (m) {
		free(m->text);
		free(m->shapes);
		free(m->by_name);
		free(m);
	}
	free(h->tensor);
	free(h->meta);
	*h = (struct dl_header){0};
}

static int compare_string(const struct dl_string *a, const char *s, size_t n)
{
	int c = memcmp(a->s, s, a->n < n ? a->n : n);

	return c ? c : (a->n > n) - (a->n < n);
}

const struct dl_tensor *dl_header_find(
	const struct dl_header *h, const char *name, size_t n)
{
	const struct memory *m = h->memory;
	size_t low = 0, high = h->tensors;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct dl_tensor *t = h->tensor + m->by_name[mid];
		int c = compare_string(&t->name, name, n);

		if (!c)
			return t;
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
	size_t low = 0, high = h->metas, n = strlen(key);

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = compare_string(&h->meta[mid][0], key, n);

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
