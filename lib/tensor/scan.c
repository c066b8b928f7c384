#include "tensor/scan.h"

#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/mem.h"

enum { NAME_SHOWN = 120, FACT_SIZE = 120 };

/* The bytes of JSON without which there is no further tensor or pair. */
enum { ITEM_BYTES = 50, PAIR_BYTES = 6 };

void dl_scan_string(const struct dl_scan *s, size_t at, struct dl_json *j)
{
	dl_json_init(j, s->json.in + at, s->json.n - at, NULL);
	dl_json_next(j);
}

int dl_scan_refuse(struct dl_scan *s, size_t key, const char *fact)
{
	struct dl_json name;
	char shown[NAME_SHOWN];

	dl_scan_string(s, key, &name);
	dl_scrub(shown, sizeof shown, name.text, name.len);
	dl_json_release(&name);
	return dl_fail(s->err, DL_DATA, "tensor \"%s\": %s", shown, fact);
}

int dl_scan_misplaced(
	struct dl_scan *s, const struct dl_scan_item *item, uint64_t at)
{
	char fact[FACT_SIZE];

	snprintf(fact, sizeof fact,
		"begins at byte %" PRIu64 " of the data, %s %" PRIu64,
		item->begin,
		item->begin < at ? "overlapping what ends at"
				 : "leaving a hole from",
		at);
	return dl_scan_refuse(s, item->key, fact);
}

/* Of the entry that is being read. */
static int refuse(struct dl_scan *s, const char *fact)
{
	return dl_scan_refuse(s, s->entry, fact);
}

/* As refuse, for what the JSON parser found in this entry. */
static int refuse_json(struct dl_scan *s)
{
	struct dl_err inner = *s->err;

	return refuse(s, inner.text);
}

uint32_t dl_scan_hash(const unsigned char *key, const char *name, size_t n)
{
	unsigned char hash[crypto_shorthash_BYTES];

	crypto_shorthash(hash, (const unsigned char *)name, n, key);
	return dl_le32(hash);
}

int dl_scan_same_text(const struct dl_scan *s, size_t a, size_t b)
{
	struct dl_json x, y;
	int same;

	dl_scan_string(s, a, &x);
	dl_scan_string(s, b, &y);
	same = x.len == y.len && !memcmp(x.text, y.text, x.len);
	dl_json_release(&x);
	dl_json_release(&y);
	return same;
}

/* The shape's product, left to right; it counts dimensions. */
static int scan_shape(struct dl_scan *s, uint64_t *elements, unsigned *rank)
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

static int scan_offsets(struct dl_scan *s, uint64_t *begin, uint64_t *end)
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

static int scan_dtype(struct dl_scan *s, enum dl_dtype *dtype)
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

struct entry {
	enum dl_dtype dtype;
	unsigned rank, extras;
	int has; /* bits of the fields seen */
	uint64_t elements, begin, end;
	size_t shape;
};

/* A field that we do not know: its value may be anything. */
static int scan_extra(struct dl_scan *s, struct entry *t)
{
	for (unsigned i = 0; i < t->extras; i++)
		if (dl_scan_same_text(s, s->extra[i], s->json.offset))
			return refuse(s, "a field comes twice");
	if (t->extras == DL_SCAN_EXTRA)
		return refuse(s, "too many unknown fields");
	s->extra[t->extras++] = s->json.offset;
	return dl_json_skip(&s->json, dl_json_next(&s->json)) ? refuse_json(s)
							      : 0;
}

static int scan_field(struct dl_scan *s, struct entry *t)
{
	enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
	int field = dl_json_is(&s->json, "dtype")	   ? DTYPE
		    : dl_json_is(&s->json, "shape")	   ? SHAPE
		    : dl_json_is(&s->json, "data_offsets") ? OFFSETS
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
static int check_entry(struct dl_scan *s, const struct entry *t)
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

/* Two tensors of which each has bytes between the other's begin and end are
 * told at once when they are neighbours. All of them wait for the sort. */
static int check_neighbour(struct dl_scan *s, const struct dl_scan_item *x,
	const struct dl_scan_item *y)
{
	if (x->begin == x->end || y->begin == y->end || x->begin >= y->end ||
		y->begin >= x->end)
		return 0;
	if (x->hash == y->hash && dl_scan_same_text(s, x->key, y->key))
		return dl_scan_refuse(s, y->key, "its name comes twice");
	return x->begin <= y->begin ? dl_scan_misplaced(s, y, x->end)
				    : dl_scan_misplaced(s, x, y->end);
}

/* The fields of an entry whose brace was just read. */
static int scan_fields(struct dl_scan *s, struct entry *entry)
{
	enum dl_json_token t;
	int code;

	while ((t = dl_json_next(&s->json)) == DL_JSON_KEY) {
		code = scan_field(s, entry);
		if (code)
			return code;
	}
	return t == DL_JSON_BAD ? refuse_json(s) : check_entry(s, entry);
}

static int scan_entry(struct dl_scan *s)
{
	struct dl_scan_item *item = s->item + s->items;
	uint32_t hash = dl_scan_hash(s->hash_key, s->json.text, s->json.len);
	size_t name_n = s->json.len;
	struct entry entry = {.has = 0};
	enum dl_json_token t;
	int code;

	s->entry = s->json.offset;
	t = dl_json_next(&s->json);
	if (t == DL_JSON_BAD)
		return refuse_json(s);
	if (t != DL_JSON_OBJECT)
		return refuse(s, "its entry is not an object");
	code = scan_fields(s, &entry);
	if (code)
		return code;
	*item = (struct dl_scan_item){entry.begin, entry.end,
		(uint32_t)s->entry, hash, (uint32_t)entry.shape, entry.dtype};
	s->names += name_n + 1;
	s->dims += entry.rank;
	return s->items++ ? check_neighbour(s, item - 1, item) : 0;
}

static int scan_pair(struct dl_scan *s)
{
	uint32_t key = (uint32_t)s->json.offset;
	size_t n = s->json.len + 1;
	enum dl_json_token t = dl_json_next(&s->json);

	if (t == DL_JSON_BAD)
		return s->err->code;
	if (t != DL_JSON_STRING)
		return dl_fail(s->err, DL_DATA,
			"__metadata__ holds a value that is not a string "
			"(JSON byte %zu)",
			s->json.offset);
	s->key[s->pairs++] = key;
	s->pair_text += n + s->json.len + 1;
	return 0;
}

/* Room for as many tensors as the rest of the JSON can hold. */
static void make_room(struct dl_scan *s)
{
	size_t more = (s->json.n - s->json.at) / ITEM_BYTES + 1;

	s->item = dl_resize(s->item, s->items + more, sizeof *s->item);
}

static int scan_metadata(struct dl_scan *s)
{
	enum dl_json_token t = dl_json_next(&s->json);
	int code;

	if (t == DL_JSON_BAD)
		return s->err->code;
	if (t != DL_JSON_OBJECT)
		return dl_fail(
			s->err, DL_DATA, "__metadata__ is not an object");
	/* The rest is pairs now, and tensors later: it has room once. */
	s->item = dl_resize(s->item, s->items, sizeof *s->item);
	s->key = dl_resize(NULL, (s->json.n - s->json.at) / PAIR_BYTES + 1,
		sizeof *s->key);
	while ((t = dl_json_next(&s->json)) == DL_JSON_KEY) {
		code = scan_pair(s);
		if (code)
			return code;
	}
	if (t == DL_JSON_BAD)
		return s->err->code;
	s->key = dl_resize(s->key, s->pairs, sizeof *s->key);
	make_room(s);
	return 0;
}

/* One member of the top object, whose key was just read. */
static int scan_member(struct dl_scan *s, int *metadata)
{
	if (!dl_json_is(&s->json, "__metadata__"))
		return scan_entry(s);
	if ((*metadata)++)
		return dl_fail(s->err, DL_DATA, "__metadata__ comes twice");
	return scan_metadata(s);
}

static int scan_top(struct dl_scan *s)
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

int dl_scan_header(struct dl_scan *s, const void *json, size_t n)
{
	int code;

	dl_json_init(&s->json, json, n, s->err);
	make_room(s);
	code = scan_top(s);
	dl_json_release(&s->json);
	return code;
}

unsigned dl_scan_shape(
	const void *json, const struct dl_scan_item *item, uint64_t *out)
{
	const unsigned char *p = (const unsigned char *)json + item->shape;
	unsigned rank = 0;
	int inside = 0;

	while (*p != '[')
		p++;
	for (p++; *p != ']'; p++) {
		int digit = *p >= '0' && *p <= '9';

		if (digit && !inside)
			out[rank++] = 0;
		if (digit)
			out[rank - 1] = out[rank - 1] * 10 + (*p - '0');
		inside = digit;
	}
	return rank;
}
