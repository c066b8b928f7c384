#include "state/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "sync/sync.h"

void dl_put_key(struct dl_buf *out, const char *key)
{
	if (out->len && out->data[out->len - 1] != '{')
		dl_buf_byte(out, ',');
	dl_put_string(out, key);
	dl_buf_byte(out, ':');
}

/* HEAD holds a number a name and fragment, and is written with each merge. */
void dl_put_u64(struct dl_buf *out, uint64_t v)
{
	char text[20], *at = text + sizeof text;

	do
		*--at = (char)('0' + v % 10);
	while (v /= 10);
	dl_buf_add(out, at, (size_t)(text + sizeof text - at));
}

void dl_put_real(struct dl_buf *out, double v)
{
	char text[32];

	if (isnan(v)) {
		dl_buf_str(out, "\"nan\"");
		return;
	}
	if (isinf(v)) {
		dl_buf_str(out, v < 0 ? "\"-inf\"" : "\"inf\"");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	dl_buf_str(out, text);
}

void dl_put_version(struct dl_buf *out, struct dl_version v)
{
	dl_buf_byte(out, '"');
	dl_put_u64(out, v.epoch);
	dl_buf_byte(out, '.');
	dl_put_u64(out, v.number);
	dl_buf_byte(out, '"');
}

void dl_put_string(struct dl_buf *out, const char *s)
{
	dl_json_quote(out, s, strlen(s));
}

static void put_field(
	struct dl_buf *out, const struct dl_field *f, const void *at)
{
	int64_t i64;
	unsigned word;

	switch (f->type) {
	case DL_FIELD_U32:
		dl_put_u64(out, *(const uint32_t *)at);
		break;
	case DL_FIELD_U64:
		dl_put_u64(out, *(const uint64_t *)at);
		break;
	case DL_FIELD_I64:
	case DL_FIELD_NS:
		i64 = *(const int64_t *)at;
		dl_put_u64(out, i64 < 0 ? 0 : (uint64_t)i64);
		break;
	case DL_FIELD_REAL:
		dl_put_real(out, *(const double *)at);
		break;
	case DL_FIELD_VERSION:
		dl_put_version(out, *(const struct dl_version *)at);
		break;
	case DL_FIELD_WORD:
		memcpy(&word, at, sizeof word);
		dl_put_string(out, f->words[word]);
		break;
	}
}

void dl_put_fields(struct dl_buf *out, const struct dl_field *f, size_t n,
	uint64_t mask, const void *base)
{
	for (size_t i = 0; i < n; i++)
		if (mask >> i & 1) {
			dl_put_key(out, f[i].key);
			put_field(out, f + i, (const char *)base + f[i].at);
		}
}

int dl_refuse(struct dl_json *j, const char *fact)
{
	return dl_fail(j->err, DL_DATA, "JSON byte %zu: %s", j->offset, fact);
}

static int expected(struct dl_json *j, const char *what)
{
	return dl_fail(
		j->err, DL_DATA, "JSON byte %zu: expected %s", j->offset, what);
}

int dl_take(struct dl_json *j, enum dl_json_token t)
{
	static const char *const names[] = {
		[DL_JSON_END] = "the end",
		[DL_JSON_OBJECT] = "an object",
		[DL_JSON_OBJECT_END] = "the end of the object",
		[DL_JSON_ARRAY] = "an array",
		[DL_JSON_ARRAY_END] = "the end of the array",
		[DL_JSON_KEY] = "a key",
		[DL_JSON_STRING] = "a string",
		[DL_JSON_NUMBER] = "a number",
		[DL_JSON_TRUE] = "true",
		[DL_JSON_FALSE] = "false",
		[DL_JSON_NULL] = "null",
	};
	enum dl_json_token got = dl_json_next(j);

	if (got == t)
		return 0;
	return got == DL_JSON_BAD ? DL_DATA : expected(j, names[t]);
}

int dl_take_key(struct dl_json *j, const char *key)
{
	enum dl_json_token got = dl_json_next(j);
	char what[64];

	if (got == DL_JSON_KEY && dl_json_is(j, key))
		return 0;
	snprintf(what, sizeof what, "the key '%s'", key);
	return got == DL_JSON_BAD ? DL_DATA : expected(j, what);
}

int dl_take_u64(struct dl_json *j, uint64_t *v)
{
	int rc = dl_take(j, DL_JSON_NUMBER);

	return rc ? rc : dl_json_u64(j, v);
}

static int take_u64_below(
	struct dl_json *j, uint64_t *v, uint64_t max, const char *what)
{
	int rc = dl_take_u64(j, v);

	if (!rc && *v > max)
		return expected(j, what);
	return rc;
}

int dl_take_real(struct dl_json *j, double *v)
{
	enum dl_json_token got = dl_json_next(j);

	if (got == DL_JSON_NUMBER)
		return dl_json_double(j, v);
	if (got == DL_JSON_BAD)
		return DL_DATA;
	if (got == DL_JSON_STRING && dl_json_is(j, "nan"))
		*v = NAN;
	else if (got == DL_JSON_STRING && dl_json_is(j, "inf"))
		*v = INFINITY;
	else if (got == DL_JSON_STRING && dl_json_is(j, "-inf"))
		*v = -INFINITY;
	else
		return expected(j, "a number, \"nan\", \"inf\" or \"-inf\"");
	return 0;
}

/* A number of one spelling: no zero in front of another digit. */
static int parse_part(const char *s, uint64_t *out)
{
	if (s[0] == '0' && s[1])
		return -1;
	return dl_parse_u64(s, 0, UINT64_MAX, out);
}

int dl_this_version(struct dl_json *j, struct dl_version *v)
{
	char text[48], *dot = NULL;

	if (j->len < sizeof text && !memchr(j->text, 0, j->len)) {
		memcpy(text, j->text, j->len);
		text[j->len] = 0;
		dot = strchr(text, '.');
	}
	if (dot) {
		*dot = 0;
		if (!parse_part(text, &v->epoch) &&
			!parse_part(dot + 1, &v->number))
			return 0;
	}
	return expected(j, "a version such as \"1.25\"");
}

int dl_take_version(struct dl_json *j, struct dl_version *v)
{
	int rc = dl_take(j, DL_JSON_STRING);

	return rc ? rc : dl_this_version(j, v);
}

static int this_string(struct dl_json *j, char *out, size_t size)
{
	if (j->len >= size || memchr(j->text, 0, j->len))
		return expected(j, "a shorter string without NUL");
	memcpy(out, j->text, j->len);
	out[j->len] = 0;
	return 0;
}

int dl_take_string(struct dl_json *j, char *out, size_t size)
{
	int rc = dl_take(j, DL_JSON_STRING);

	return rc ? rc : this_string(j, out, size);
}

int dl_take_name(struct dl_json *j, char *out)
{
	int rc = dl_take_string(j, out, DL_NAME_MAX + 1);

	if (!rc && !dl_name_ok(out, strlen(out)))
		return expected(j, "a good name");
	return rc;
}

static int this_hex(struct dl_json *j, char *out, size_t digits)
{
	int rc = this_string(j, out, digits + 1);
	char what[64];

	if (rc)
		return rc;
	if (strlen(out) == digits && strspn(out, "0123456789abcdef") == digits)
		return 0;
	snprintf(what, sizeof what, "%zu hexadecimal digits", digits);
	return expected(j, what);
}

int dl_take_hex(struct dl_json *j, char *out, size_t digits)
{
	int rc = dl_take(j, DL_JSON_STRING);

	return rc ? rc : this_hex(j, out, digits);
}

int dl_take_hash(struct dl_json *j, char *out)
{
	return dl_take_hex(j, out, DL_HASH_HEX - 1);
}

int dl_take_hash_or_null(struct dl_json *j, char *out)
{
	enum dl_json_token t = dl_json_next(j);

	*out = '\0';
	if (t == DL_JSON_STRING)
		return this_hex(j, out, DL_HASH_HEX - 1);
	if (t == DL_JSON_NULL)
		return 0;
	return t == DL_JSON_BAD ? DL_DATA : expected(j, "a hash or null");
}

int dl_take_exactly(struct dl_json *j, const char *s)
{
	int rc = dl_take(j, DL_JSON_STRING);
	char what[64];

	if (rc || dl_json_is(j, s))
		return rc;
	snprintf(what, sizeof what, "'%s'", s);
	return expected(j, what);
}

static int take_word(struct dl_json *j, const char *const *words, void *at)
{
	int rc = dl_take(j, DL_JSON_STRING);

	if (rc)
		return rc;
	for (unsigned i = 0; words[i]; i++)
		if (dl_json_is(j, words[i])) {
			memcpy(at, &i, sizeof i);
			return 0;
		}
	return expected(j, "a word that is known here");
}

static int take_field(struct dl_json *j, const struct dl_field *f, void *at)
{
	uint64_t v = 0;
	int rc = DL_SOFTWARE;

	switch (f->type) {
	case DL_FIELD_U32:
		rc = take_u64_below(j, &v, UINT32_MAX, "at most 32 bits");
		*(uint32_t *)at = (uint32_t)v;
		break;
	case DL_FIELD_U64:
		rc = dl_take_u64(j, at);
		break;
	case DL_FIELD_I64:
		rc = take_u64_below(j, &v, INT64_MAX, "at most 63 bits");
		*(int64_t *)at = (int64_t)v;
		break;
	case DL_FIELD_NS:
		rc = take_u64_below(j, &v, INT64_MAX / 2, "at most 62 bits");
		*(int64_t *)at = (int64_t)v;
		break;
	case DL_FIELD_REAL:
		rc = dl_take_real(j, at);
		break;
	case DL_FIELD_VERSION:
		rc = dl_take_version(j, at);
		break;
	case DL_FIELD_WORD:
		rc = take_word(j, f->words, at);
		break;
	}
	return rc;
}

int dl_take_fields(struct dl_json *j, const struct dl_field *f, size_t n,
	uint64_t mask, void *base)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		if (!(mask >> i & 1))
			continue;
		rc = dl_take_key(j, f[i].key);
		if (!rc)
			rc = take_field(j, f + i, (char *)base + f[i].at);
		if (rc)
			return rc;
	}
	return 0;
}

int dl_take_item(struct dl_json *j, enum dl_json_token t)
{
	enum dl_json_token got = dl_json_next(j);

	if (got == t)
		return 1;
	if (got == DL_JSON_ARRAY_END)
		return 0;
	if (got != DL_JSON_BAD)
		expected(j, "another item or the end of the array");
	return -1;
}
