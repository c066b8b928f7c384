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

static void skip_space(struct dl_json *j)
{
	for (; j->at < j->n; j->at++) {
		int c = j->in[j->at];

		if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
			return;
	}
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

/* The run of plain bytes at the cursor: what may be copied as it is. */
static size_t plain_run(const struct dl_json *j)
{
	size_t at = j->at;

	while (at < j->n && j->in[at] >= 0x20 && j->in[at] < 0x80 &&
		j->in[at] != '"' && j->in[at] != '\\')
		at++;
	return at - j->at;
}

/* Makes room for the decoded string at the cursor, which is no longer than its
 * spelling, so that memory follows the input and not the growth of a buffer. */
static void reserve_string(struct dl_json *j)
{
	size_t end = j->at + plain_run(j);

	while (end < j->n && j->in[end] != '"')
		end += j->in[end] == '\\' ? 2 : 1;
	dl_buf_clear(&j->buf);
	dl_buf_reserve_exact(&j->buf, end - j->at + 1);
}

/* Makes n bytes of the input the current text. */
static void copy_text(struct dl_json *j, size_t from, size_t n)
{
	if (j->buf.cap <= n) {
		dl_buf_clear(&j->buf);
		dl_buf_reserve_exact(&j->buf, n + 1);
	}
	memcpy(j->buf.data, j->in + from, n);
	j->buf.data[n] = 0;
	j->text = (char *)j->buf.data;
	j->len = n;
}

/* One character that is not plain: 0, or -1 when it is refused. */
static int special(struct dl_json *j, int c)
{
	size_t at = j->at, n;
	const char *fact = "ends inside a string";

	if (c == '\\') {
		j->at++;
		if (!escape(j, &fact))
			return 0;
	} else if (c >= 0 && c < 0x20) {
		fact = "control character in a string";
	} else if (c >= 0) {
		n = dl_utf8_length((const char *)j->in + at, j->n - at);
		dl_buf_add(&j->buf, j->in + at, n);
		j->at += n;
		if (n)
			return 0;
		fact = "invalid UTF-8";
	}
	bad(j, at, fact);
	return -1;
}

/* A string whose opening quote was taken: 0, or -1 when it is refused. */
static int string(struct dl_json *j)
{
	size_t n = plain_run(j);
	int c = j->at + n < j->n ? j->in[j->at + n] : -1;

	if (c == '"') { /* as most are */
		copy_text(j, j->at, n);
		j->at += n + 1;
		return 0;
	}
	reserve_string(j);
	for (;;) {
		dl_buf_add(&j->buf, j->in + j->at, n);
		j->at += n;
		c = peek(j);
		if (c == '"')
			break;
		if (special(j, c))
			return -1;
		n = plain_run(j);
	}
	j->at++;
	j->len = j->buf.len;
	j->text = dl_buf_cstr(&j->buf);
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
	copy_text(j, from, j->at - from);
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
	j->stack[j->depth++] = (unsigned char)c;
	j->at++;
	j->want = c == '{' ? WANT_FIRST_KEY : WANT_FIRST_ITEM;
	return c == '{' ? DL_JSON_OBJECT : DL_JSON_ARRAY;
}

static enum dl_json_token close_nest(struct dl_json *j)
{
	int c = j->stack[--j->depth];

	j->at++;
	value_done(j);
	return c == '{' ? DL_JSON_OBJECT_END : DL_JSON_ARRAY_END;
}

static enum dl_json_token value(struct dl_json *j)
{
	enum dl_json_token t;
	int c = peek(j);

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

static enum dl_json_token key(struct dl_json *j)
{
	if (peek(j) != '"')
		return bad(j, j->at, "not a key");
	j->at++;
	if (string(j))
		return DL_JSON_BAD;
	j->want = WANT_COLON;
	return DL_JSON_KEY;
}

/* Takes the colon or comma that goes before the next token, if one does; -1
 * when it is missing. */
static int separator(struct dl_json *j, int close)
{
	int c = peek(j);

	if (j->want == WANT_COLON) {
		if (c != ':') {
			bad(j, j->at, "a colon is missing");
			return -1;
		}
		j->want = WANT_VALUE;
	} else if (j->want == WANT_COMMA && c != close) {
		if (c != ',') {
			bad(j, j->at, "a comma or an end is missing");
			return -1;
		}
		j->want = close == '}' ? WANT_KEY : WANT_VALUE;
	} else {
		return 0;
	}
	j->at++;
	skip_space(j);
	return 0;
}

enum dl_json_token dl_json_next(struct dl_json *j)
{
	int close = 0;

	if (j->want == WANT_STOP)
		return DL_JSON_BAD;
	skip_space(j);
	j->offset = j->at;
	if (j->want == WANT_NOTHING)
		return j->at == j->n
			       ? DL_JSON_END
			       : bad(j, j->at, "bytes after the top value");
	if (j->depth)
		close = j->stack[j->depth - 1] == '{' ? '}' : ']';
	if (j->at < j->n && separator(j, close))
		return DL_JSON_BAD;
	j->offset = j->at;
	if (j->at == j->n)
		return bad(j, j->at, "ends too early");
	if (peek(j) == close &&
		(j->want == WANT_COMMA || j->want == WANT_FIRST_KEY ||
			j->want == WANT_FIRST_ITEM))
		return close_nest(j);
	if (j->want == WANT_FIRST_KEY || j->want == WANT_KEY)
		return key(j);
	return value(j);
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
		if (v > (UINT64_MAX - d) / 10)
			return dl_fail(j->err, DL_DATA,
				"JSON byte %zu: integer above 64 bits",
				j->offset);
		v = v * 10 + d;
	}
	*out = v;
	return 0;
}

int dl_json_double(struct dl_json *j, double *out)
{
	double v = strtod(j->text, NULL);

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
