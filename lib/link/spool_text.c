#include "link/spool_text.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

static const char format[] = "# dl-spool 1";

enum { VALUE_MAX = 128 }; /* bytes of a value that is known here */

int dl_spool_take_number(const char **s, uint64_t *out)
{
	const char *at = *s;
	uint64_t v = 0;

	if (*at == '0' && at[1] >= '0' && at[1] <= '9')
		return -1;
	for (; *at >= '0' && *at <= '9'; at++) {
		unsigned digit = (unsigned)(*at - '0');

		if (v > (UINT64_MAX - digit) / 10)
			return -1;
		v = v * 10 + digit;
	}
	if (at == *s)
		return -1;
	*s = at;
	*out = v;
	return 0;
}

int dl_spool_take_version(const char **s, struct dl_version *out)
{
	if (dl_spool_take_number(s, &out->epoch) || *(*s)++ != '.')
		return -1;
	return dl_spool_take_number(s, &out->number);
}

int dl_spool_is_hash(const char *s, size_t n)
{
	return n == DL_HASH_HEX - 1 && strspn(s, "0123456789abcdef") >= n;
}

static int is_token(const char *s, size_t n)
{
	return n && n < DL_SPOOL_WORD &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.:") == n;
}

static void put_value(
	struct dl_buf *out, const struct dl_spool_field *f, const void *at)
{
	struct dl_version version;
	unsigned word;

	switch (f->form) {
	case SPOOL_NUMBER:
	case SPOOL_POSITIVE:
		dl_buf_printf(out, "%" PRIu64, *(const uint64_t *)at);
		break;
	case SPOOL_FLAG:
		dl_buf_str(out, *(const int *)at ? "1" : "0");
		break;
	case SPOOL_VERSION:
		version = *(const struct dl_version *)at;
		dl_buf_printf(out, "%" PRIu64 ".%" PRIu64, version.epoch,
			version.number);
		break;
	case SPOOL_NAME:
	case SPOOL_HASH:
	case SPOOL_NO_HASH:
	case SPOOL_TOKEN:
		dl_buf_str(out, *(const char *)at ? at : "-");
		break;
	case SPOOL_LOSS:
		if (isfinite(*(const double *)at))
			dl_buf_printf(out, "%.6g", *(const double *)at);
		else
			dl_buf_str(out, "nan");
		break;
	case SPOOL_WORD:
		memcpy(&word, at, sizeof word);
		dl_buf_str(out, f->words[word]);
		break;
	}
}

static const void *in(const void *v, const struct dl_spool_field *f)
{
	return (const char *)v + f->at;
}

void dl_spool_put_keys(
	struct dl_buf *out, const struct dl_spool_fields *f, const void *v)
{
	dl_buf_printf(out, "%s\n", format);
	for (size_t i = 0; i < f->n; i++) {
		dl_buf_printf(out, "# %s ", f->field[i].key);
		put_value(out, f->field + i, in(v, f->field + i));
		dl_buf_byte(out, '\n');
	}
}

void dl_spool_put_columns(
	struct dl_buf *out, const struct dl_spool_fields *columns)
{
	dl_buf_str(out, "#fragment");
	for (size_t i = 0; i < columns->n; i++)
		dl_buf_printf(out, "\t%s", columns->field[i].key);
	dl_buf_byte(out, '\n');
}

void dl_spool_put_row(struct dl_buf *out, uint32_t p,
	const struct dl_spool_fields *columns, const void *v)
{
	dl_buf_printf(out, "%" PRIu32, p);
	for (size_t i = 0; i < columns->n; i++) {
		dl_buf_byte(out, '\t');
		put_value(out, columns->field + i, in(v, columns->field + i));
	}
	dl_buf_byte(out, '\n');
}

void dl_spool_lines_init(
	struct dl_spool_lines *t, const void *text, size_t n, struct dl_err *e)
{
	*t = (struct dl_spool_lines){.at = text, .end = text, .e = e};
	if (n)
		t->end += n;
}

int dl_spool_refuse(struct dl_spool_lines *t, const char *fact)
{
	return dl_fail(t->e, DL_DATA, "line %zu: %s", t->number, fact);
}

/* The next line without taking it: 1, 0 at the end, -1 when it has none. */
static int peek(const struct dl_spool_lines *t, size_t *n)
{
	size_t left = (size_t)(t->end - t->at);
	const char *newline = left ? memchr(t->at, '\n', left) : NULL;

	if (!left)
		return 0;
	if (!newline)
		return -1;
	*n = (size_t)(newline - t->at);
	return 1;
}

int dl_spool_line(struct dl_spool_lines *t, const char **line, size_t *n)
{
	int got = peek(t, n);

	if (!got)
		return 0;
	t->number++;
	if (got < 0) {
		dl_spool_refuse(t, "ends without a newline");
		return -1;
	}
	if (memchr(t->at, 0, *n)) {
		dl_spool_refuse(t, "holds NUL");
		return -1;
	}
	*line = t->at;
	t->at += *n + 1;
	return 1;
}

static int take_word(const char *s, const char *const *words, void *at)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(s, words[i])) {
			memcpy(at, &i, sizeof i);
			return 0;
		}
	return -1;
}

static int take_number(const char *s, uint64_t min, void *at)
{
	uint64_t v;

	if (dl_spool_take_number(&s, &v) || *s || v < min)
		return -1;
	*(uint64_t *)at = v;
	return 0;
}

static int take_loss(const char *s, double *at)
{
	*at = NAN;
	return strcmp(s, "nan") ? dl_parse_double(s, -DBL_MAX, DBL_MAX, at) : 0;
}

static int take_string(
	const char *s, size_t n, int good, int optional, void *at)
{
	if (optional && !strcmp(s, "-"))
		n = 0;
	else if (!good)
		return -1;
	memcpy(at, s, n);
	((char *)at)[n] = 0;
	return 0;
}

/* s has n bytes, fewer than VALUE_MAX, and a NUL. */
static int take_value(
	const char *s, size_t n, const struct dl_spool_field *f, void *at)
{
	switch (f->form) {
	case SPOOL_NUMBER:
		return take_number(s, 0, at);
	case SPOOL_POSITIVE:
		return take_number(s, 1, at);
	case SPOOL_FLAG:
		*(int *)at = *s == '1';
		return n == 1 && (*s == '0' || *s == '1') ? 0 : -1;
	case SPOOL_VERSION:
		return dl_spool_take_version(&s, at) || *s ? -1 : 0;
	case SPOOL_NAME:
		return take_string(s, n, dl_name_ok(s, n), 0, at);
	case SPOOL_HASH:
		return take_string(s, n, dl_spool_is_hash(s, n), 0, at);
	case SPOOL_NO_HASH:
		return take_string(s, n, dl_spool_is_hash(s, n), 1, at);
	case SPOOL_TOKEN:
		return take_string(s, n, is_token(s, n), 1, at);
	case SPOOL_LOSS:
		return take_loss(s, at);
	case SPOOL_WORD:
		return take_word(s, f->words, at);
	}
	return -1;
}

/* The n bytes at s as the value of f. */
static int take(struct dl_spool_lines *t, const char *s, size_t n,
	const struct dl_spool_field *f, void *v)
{
	char value[VALUE_MAX], fact[64];

	if (n < sizeof value) {
		memcpy(value, s, n);
		value[n] = 0;
		if (!take_value(value, n, f, (char *)v + f->at))
			return 0;
	}
	snprintf(fact, sizeof fact, "no good value of %s", f->key);
	return dl_spool_refuse(t, fact);
}

/* A line "key value", after its "# ". */
static int take_key(struct dl_spool_lines *t, const char *line, size_t n,
	const struct dl_spool_fields *f, uint64_t *seen, void *v)
{
	const char *space = memchr(line, ' ', n);
	size_t key = space ? (size_t)(space - line) : n;

	for (size_t i = 0; i < f->n; i++) {
		const char *name = f->field[i].key;

		if (strlen(name) != key || memcmp(name, line, key) != 0)
			continue;
		if (*seen >> i & 1)
			return dl_spool_refuse(t, "the key comes twice");
		*seen |= UINT64_C(1) << i;
		if (!space)
			return dl_spool_refuse(t, "the key has no value");
		return take(t, space + 1, n - key - 1, &f->field[i], v);
	}
	return 0;
}

int dl_spool_take_keys(
	struct dl_spool_lines *t, const struct dl_spool_fields *f, void *v)
{
	const char *line;
	uint64_t seen = 0;
	char fact[64];
	size_t n;
	int got = dl_spool_line(t, &line, &n);

	if (got < 0)
		return DL_DATA;
	if (!got || n != sizeof format - 1 || memcmp(line, format, n) != 0)
		return dl_spool_refuse(t, "not \"# dl-spool 1\"");
	while (t->end - t->at > 1 && !memcmp(t->at, "# ", 2)) {
		if (dl_spool_line(t, &line, &n) < 0 ||
			take_key(t, line + 2, n - 2, f, &seen, v))
			return DL_DATA;
	}
	for (size_t i = 0; i < f->n; i++)
		if (!(seen >> i & 1)) {
			snprintf(fact, sizeof fact, "%s is missing above",
				f->field[i].key);
			return dl_spool_refuse(t, fact);
		}
	return 0;
}

static int take_columns(
	struct dl_spool_lines *t, const struct dl_spool_fields *columns)
{
	struct dl_buf expected = DL_BUF_INIT;
	const char *line;
	size_t n;
	int good = dl_spool_line(t, &line, &n);

	if (good < 0)
		return DL_DATA;
	dl_spool_put_columns(&expected, columns);
	good = good && n + 1 == expected.len && !memcmp(line, expected.data, n);
	dl_buf_free(&expected);
	return good ? 0 : dl_spool_refuse(t, "not the names of the columns");
}

static int take_row(struct dl_spool_lines *t, const char *line, size_t n,
	const struct dl_spool_fields *columns, uint32_t p, void *v)
{
	const struct dl_spool_field fragment = {
		"fragment", SPOOL_NUMBER, 0, NULL};
	const char *end = line + n;
	uint64_t number = 0;

	for (size_t i = 0; i <= columns->n; i++) {
		const char *tab = memchr(line, '\t', (size_t)(end - line));
		const char *stop = i < columns->n ? tab : end;

		if (!stop || (i == columns->n && tab))
			return dl_spool_refuse(t, "not one value a column");
		if (i ? take(t, line, (size_t)(stop - line),
				&columns->field[i - 1], v)
		      : take(t, line, (size_t)(stop - line), &fragment,
				&number))
			return DL_DATA;
		line = stop + 1;
	}
	if (number != p)
		return dl_spool_refuse(t, "not the next fragment");
	return 0;
}

int dl_spool_take_rows(struct dl_spool_lines *t,
	const struct dl_spool_fields *columns, size_t size, void **rows,
	uint32_t *n)
{
	size_t cap = 0, length;
	char *row = NULL;
	const char *line;
	int got, code = take_columns(t, columns);

	*n = 0;
	while (!code && (got = dl_spool_line(t, &line, &length)) != 0) {
		if (got < 0 || *n == DL_SPOOL_FRAGMENTS_MAX) {
			code = got < 0 ? DL_DATA
				       : dl_spool_refuse(t, "too many rows");
			break;
		}
		if (*n == cap) {
			cap = cap ? 2 * cap : 16;
			row = dl_resize(row, cap, size);
		}
		code = take_row(t, line, length, columns, *n, row + *n * size);
		++*n;
	}
	if (!code && !*n)
		code = dl_spool_refuse(t, "no fragment");
	if (code) {
		free(row);
		row = NULL;
		*n = 0;
	}
	*rows = row;
	return code;
}
