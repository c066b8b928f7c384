#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* What may come next. */
enum {
	WANT_VALUE,
	WANT_FIRST_KEY, /* or the end of the object */
	WANT_KEY,
	WANT_COLON,
	WANT_FIRST_ITEM, /* or the end of the array */
	WANT_COMMA,	 /* or the end of what is open */
	WANT_NOTHING,	 /* the top value is complete */
	WANT_STOP,	 /* refused */
};

void dl_json_init(struct dl_json *j, const void *in, size_t n, struct dl_err *e)
{
	*j = (struct dl_json){.in = in, .n = n, .err = e, .want = WANT_VALUE};
}

void dl_json_release(struct dl_json *j)
{
	dl_buf_free(&j->buf);
}

static enum dl_json_token bad(struct dl_json *j, size_t at, const char *fact)
{
	dl_fail(j->err, DL_DATA, "JSON byte %zu: %s", at, fact);
	j->want = WANT_STOP;
	return DL_JSON_BAD;
}

static int is_digit(int c)
{
	return c >= '0' && c <= '9';
}

/* The byte at the cursor, or -1 at the end. */
static int peek(const struct dl_json *j)
{
	return j->at < j->n ? j->in[j->at] : -1;
}

/* Past white space: the byte that is there, or -1 at the end. */
static int skip_space(struct dl_json *j)
{
	int c = peek(j);

	while (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
		j->at++;
		c = peek(j);
	}
	return c;
}

static void add_utf8(struct dl_buf *b, uint32_t c)
{
	if (c < 0x80) {
		dl_buf_byte(b, (int)c);
	} else if (c < 0x800) {
		dl_buf_byte(b, (int)(0xc0 | c >> 6));
		dl_buf_byte(b, (int)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		dl_buf_byte(b, (int)(0xe0 | c >> 12));
		dl_buf_byte(b, (int)(0x80 | (c >> 6 & 0x3f)));
		dl_buf_byte(b, (int)(0x80 | (c & 0x3f)));
	} else {
		dl_buf_byte(b, (int)(0xf0 | c >> 18));
		dl_buf_byte(b, (int)(0x80 | (c >> 12 & 0x3f)));
		dl_buf_byte(b, (int)(0x80 | (c >> 6 & 0x3f)));
		dl_buf_byte(b, (int)(0x80 | (c & 0x3f)));
	}
}

/* The four hexadecimal digits at the cursor, or -1. */
static int32_t hex4(struct dl_json *j)
{
	int32_t v = 0;

	for (int i = 0; i < 4; i++, j->at++) {
		int c = peek(j);

		if (is_digit(c))
			v = v << 4 | (c - '0');
		else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
			v = v << 4 | ((c | 32) - 'a' + 10);
		else
			return -1;
	}
	return v;
}

/* The escape after a backslash; 0, or -1 with what is wrong in *fact. */
static int escape(struct dl_json *j, const char **fact)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	int c = peek(j);
	const char *p = c > 0 ? strchr(from, c) : NULL;
	int32_t high, low;

	j->at++;
	if (p) {
		dl_buf_byte(&j->buf, to[p - from]);
		return 0;
	}
	*fact = "unknown escape in a string";
	if (c != 'u' || (high = hex4(j)) < 0)
		return -1;
	if (high >= 0xd800 && high < 0xe000) {
		*fact = "unpaired surrogate in a string";
		if (high >= 0xdc00 || j->n - j->at < 6 ||
			memcmp(j->in + j->at, "\\u", 2) != 0)
			return -1;
		j->at += 2;
		low = hex4(j);
		if (low < 0xdc00 || low >= 0xe000)
			return -1;
		high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	}
	add_utf8(&j->buf, (uint32_t)high);
	return 0;
}

/* Of eight bytes: the high bit of the first (lowest) one that is a control, a
 * quote, a backslash or not ASCII; bits above it mean nothing. */
static uint64_t first_special(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';

	return (x | (x - ones * ' ') | (quote - ones) | (backslash - ones)) &
	       ones << 7;
}

/* The run of plain bytes at the cursor: what may be taken as it is. */
static size_t plain_run(const struct dl_json *j)
{
	const unsigned char *from = j->in + j->at, *end = j->in + j->n;
	const unsigned char *p = from;
	uint64_t special;

	for (; end - p >= 8; p += 8) {
		special = first_special(dl_le64(p));
		if (special)
			return (size_t)(p - from) +
			       (size_t)__builtin_ctzll(special) / 8;
	}
	while (p < end && *p >= ' ' && *p < 0x80 && *p != '"' && *p != '\\')
		p++;
	return (size_t)(p - from);
}

/* Makes n bytes of the input the current text. */
static void point_at(struct dl_json *j, size_t from, size_t n)
{
	j->text = (const char *)j->in + from;
	j->len = n;
}

/* To the quote or backslash that ends the run of characters at the cursor: 0,
 * or -1 when what stands there is neither. */
static int take_run(struct dl_json *j)
{
	size_t n;
	int c;

	for (;;) {
		j->at += plain_run(j);
		c = peek(j);
		if (c == '"' || c == '\\')
			return 0;
		if (c < 0x20)
			break;
		n = dl_utf8_length((const char *)j->in + j->at, j->n - j->at);
		if (!n)
			break;
		j->at += n;
	}
	bad(j, j->at,
		c < 0	   ? "ends inside a string"
		: c < 0x20 ? "control character in a string"
			   : "invalid UTF-8");
	return -1;
}

/* Makes room for the string from a byte on, which decoded is no longer than its
 * spelling, so that memory follows the input and not the growth of a buffer. */
static void reserve_string(struct dl_json *j, size_t from)
{
	size_t end = j->at;

	while (end < j->n && j->in[end] != '"')
		end += j->in[end] == '\\' ? 2 : 1;
	dl_buf_clear(&j->buf);
	dl_buf_reserve_exact(&j->buf, end - from);
}

/* The string from a byte on, whose first escape is at the cursor: 0, or -1. */
static int decode(struct dl_json *j, size_t from)
{
	const char *fact;
	size_t at;

	reserve_string(j, from);
	for (;;) {
		dl_buf_add(&j->buf, j->in + from, j->at - from);
		at = j->at++;
		if (j->in[at] == '"')
			break;
		if (escape(j, &fact)) {
			bad(j, at, fact);
			return -1;
		}
		from = j->at;
		if (take_run(j))
			return -1;
	}
	j->text = (const char *)j->buf.data;
	j->len = j->buf.len;
	return 0;
}

/* A string whose opening quote was taken: 0, or -1 when it is refused. */
static int string(struct dl_json *j)
{
	size_t from = j->at;

	if (take_run(j))
		return -1;
	if (j->in[j->at] == '\\')
		return decode(j, from);
	point_at(j, from, j->at++ - from);
	return 0;
}

static size_t digits(struct dl_json *j)
{
	size_t from = j->at;

	while (is_digit(peek(j)))
		j->at++;
	return j->at - from;
}

static enum dl_json_token number(struct dl_json *j)
{
	size_t from = j->at;
	int fine;

	if (peek(j) == '-')
		j->at++;
	if (peek(j) == '0') {
		j->at++;
		fine = !is_digit(peek(j));
	} else {
		fine = digits(j) > 0;
	}
	if (fine && peek(j) == '.') {
		j->at++;
		fine = digits(j) > 0;
	}
	if (fine && (peek(j) == 'e' || peek(j) == 'E')) {
		j->at++;
		if (peek(j) == '+' || peek(j) == '-')
			j->at++;
		fine = digits(j) > 0;
	}
	if (!fine)
		return bad(j, from, "not a number of JSON");
	point_at(j, from, j->at - from);
	return DL_JSON_NUMBER;
}

/* After a value: a comma or an end, or nothing more at the top. */
static void value_done(struct dl_json *j)
{
	j->want = j->depth ? WANT_COMMA : WANT_NOTHING;
}

static enum dl_json_token word(struct dl_json *j)
{
	static const struct {
		const char *text;
		enum dl_json_token token;
	} words[] = {{"true", DL_JSON_TRUE}, {"false", DL_JSON_FALSE},
		{"null", DL_JSON_NULL}};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i].text);

		if (j->n - j->at >= n &&
			!memcmp(j->in + j->at, words[i].text, n)) {
			j->at += n;
			value_done(j);
			return words[i].token;
		}
	}
	return bad(j, j->at, "not a value");
}

static enum dl_json_token open_nest(struct dl_json *j, int c)
{
	if (j->depth == DL_JSON_DEPTH)
		return bad(j, j->at, "nested too deep");
	j->close[++j->depth] = c == '{' ? '}' : ']';
	j->at++;
	j->want = c == '{' ? WANT_FIRST_KEY : WANT_FIRST_ITEM;
	return c == '{' ? DL_JSON_OBJECT : DL_JSON_ARRAY;
}

static enum dl_json_token close_nest(struct dl_json *j)
{
	int c = j->close[j->depth--];

	j->at++;
	value_done(j);
	return c == '}' ? DL_JSON_OBJECT_END : DL_JSON_ARRAY_END;
}

static enum dl_json_token value(struct dl_json *j, int c)
{
	enum dl_json_token t;

	if (c == '{' || c == '[')
		return open_nest(j, c);
	if (c == '"') {
		j->at++;
		if (string(j))
			return DL_JSON_BAD;
		value_done(j);
		return DL_JSON_STRING;
	}
	if (c == '-' || is_digit(c)) {
		t = number(j);
		if (t != DL_JSON_BAD)
			value_done(j);
		return t;
	}
	return word(j);
}

static enum dl_json_token key(struct dl_json *j, int c)
{
	if (c != '"')
		return bad(j, j->at, "not a key");
	j->at++;
	if (string(j))
		return DL_JSON_BAD;
	j->want = WANT_COLON;
	return DL_JSON_KEY;
}

/* Past the colon or comma that goes before the next token, and past the space
 * around it: the byte that is there. */
static int separator(struct dl_json *j)
{
	int c = skip_space(j);

	if (j->want == WANT_COMMA && c == ',')
		j->want = j->close[j->depth] == '}' ? WANT_KEY : WANT_VALUE;
	else if (j->want == WANT_COLON && c == ':')
		j->want = WANT_VALUE;
	else
		return c;
	j->at++;
	return skip_space(j);
}

enum dl_json_token dl_json_next(struct dl_json *j)
{
	int c = separator(j);

	j->offset = j->at;
	if (c < 0 && j->want < WANT_NOTHING)
		return bad(j, j->at, "ends too early");
	switch (j->want) {
	case WANT_FIRST_KEY:
		return c == '}' ? close_nest(j) : key(j, c);
	case WANT_KEY:
		return key(j, c);
	case WANT_FIRST_ITEM:
		return c == ']' ? close_nest(j) : value(j, c);
	case WANT_VALUE:
		return value(j, c);
	case WANT_COLON:
		return bad(j, j->at, "a colon is missing");
	case WANT_COMMA:
		return c == j->close[j->depth]
			       ? close_nest(j)
			       : bad(j, j->at, "a comma or an end is missing");
	case WANT_NOTHING:
		return c < 0 ? DL_JSON_END
			     : bad(j, j->at, "bytes after the top value");
	default:
		return DL_JSON_BAD;
	}
}

int dl_json_skip(struct dl_json *j, enum dl_json_token t)
{
	unsigned depth = j->depth;

	if (t == DL_JSON_OBJECT || t == DL_JSON_ARRAY)
		for (depth--; j->depth > depth;)
			if (dl_json_next(j) == DL_JSON_BAD)
				return DL_DATA;
	return t == DL_JSON_BAD ? DL_DATA : 0;
}

int dl_json_u64(struct dl_json *j, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < j->len; i++) {
		unsigned d = (unsigned char)j->text[i] - '0';

		if (d > 9)
			return dl_fail(j->err, DL_DATA,
				"JSON byte %zu: not an integer from 0",
				j->offset);
		if (__builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, d, &v))
			return dl_fail(j->err, DL_DATA,
				"JSON byte %zu: integer above 64 bits",
				j->offset);
	}
	*out = v;
	return 0;
}

int dl_json_double(struct dl_json *j, double *out)
{
	double v;

	dl_buf_clear(&j->buf);
	dl_buf_add(&j->buf, j->text, j->len);
	v = strtod(dl_buf_cstr(&j->buf), NULL);
	if (!isfinite(v))
		return dl_fail(j->err, DL_DATA,
			"JSON byte %zu: number too large", j->offset);
	*out = v;
	return 0;
}

void dl_json_quote(struct dl_buf *out, const char *s, size_t n)
{
	static const char plain[] = "\"\\\b\f\n\r\t", spelled[] = "\"\\bfnrt";

	dl_buf_byte(out, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		const char *p = c ? strchr(plain, c) : NULL;

		if (p) {
			dl_buf_byte(out, '\\');
			dl_buf_byte(out, spelled[p - plain]);
		} else if (c < 0x20) {
			dl_buf_printf(out, "\\u%04x", c);
		} else {
			dl_buf_byte(out, c);
		}
	}
	dl_buf_byte(out, '"');
}
