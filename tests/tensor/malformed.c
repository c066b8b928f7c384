#include "malformed.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Spelled short: an entry, and one of two f32 at the beginning of the data. */
#define ENTRY(dtype, shape, offsets)                                           \
	"{\"dtype\":\"" dtype "\",\"shape\":" shape                            \
	",\"data_offsets\":" offsets "}"
#define PAIR ENTRY("F32", "[2]", "[0,8]")
#define ONE(entry) "{\"a\":" entry "}"
#define TWO(a, b) "{\"a\":" a ",\"b\":" b "}"
#define META(meta) "{\"__metadata__\":" meta ",\"a\":" PAIR "}"
#define TWICE "comes twice"

/* Headers in front of the right length, and 8 bytes of data. */
static const struct {
	const char *name, *json, *fact;
} headers[] = {
	{"empty", "", "ends too early"},
	{"blank", "        ", "ends too early"},
	{"array", "[]", "not a JSON object"},
	{"null", "null", "not a JSON object"},
	{"string", "\"{}\"", "not a JSON object"},
	{"number", "1", "not a JSON object"},
	{"open", "{", "ends too early"},
	{"open-entry", "{\"a\":{", "ends too early"},
	{"open-string", "{\"a", "ends inside a string"},
	{"closed-twice", ONE(PAIR) "}", "bytes after the top value"},
	{"two-objects", ONE(PAIR) "{}", "bytes after the top value"},
	{"byte-order-mark", "\xef\xbb\xbf" ONE(PAIR), "not a value"},
	{"comma-first", "{,\"a\":" PAIR "}", "not a key"},
	{"comma-last", "{\"a\":" PAIR ",}", "not a key"},
	{"comma-missing", "{\"a\":" PAIR " \"b\":" PAIR "}", "comma"},
	{"colon-missing", "{\"a\" " PAIR "}", "colon"},
	{"bare-key", "{a:" PAIR "}", "not a key"},
	{"single-quotes", "{'a':" PAIR "}", "not a key"},
	{"comment", "{/* */\"a\":" PAIR "}", "not a key"},
	{"mismatched", "{\"a\":{\"x\":[}}}", "not a value"},
	{"utf8-alone", "{\"\x80\":" PAIR "}", "invalid UTF-8"},
	{"utf8-cut", "{\"\xe2\x82\":" PAIR "}", "invalid UTF-8"},
	{"utf8-overlong", "{\"\xc0\xaf\":" PAIR "}", "invalid UTF-8"},
	{"utf8-surrogate", "{\"\xed\xa0\x80\":" PAIR "}", "invalid UTF-8"},
	{"utf8-above", "{\"\xf4\x90\x80\x80\":" PAIR "}", "invalid UTF-8"},
	{"utf8-in-value", META("{\"k\":\"\xff\"}"), "invalid UTF-8"},
	{"surrogate-high", "{\"\\ud800\":" PAIR "}", "surrogate"},
	{"surrogate-low", "{\"\\udc00\":" PAIR "}", "surrogate"},
	{"surrogate-two-high", "{\"\\ud800\\ud800\":" PAIR "}", "surrogate"},
	{"control", "{\"\n\":" PAIR "}", "control character"},
	{"escape-unknown", "{\"\\x41\":" PAIR "}", "unknown escape"},
	{"escape-short", "{\"\\u41\":" PAIR "}", "unknown escape"},
	{"deep", ONE("{\"x\":[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]}"),
		"nested too deep"},
	{"entry-array", ONE("[\"F32\",[2],[0,8]]"), "not an object"},
	{"entry-null", ONE("null"), "not an object"},
	{"entry-empty", ONE("{}"), "is missing"},
	{"dtype-missing", ONE("{\"shape\":[2],\"data_offsets\":[0,8]}"),
		"is missing"},
	{"shape-missing", ONE("{\"dtype\":\"F32\",\"data_offsets\":[0,8]}"),
		"is missing"},
	{"offsets-missing", ONE("{\"dtype\":\"F32\",\"shape\":[2]}"),
		"is missing"},
	{"dtype-unknown", ONE(ENTRY("F31", "[2]", "[0,8]")), "unknown dtype"},
	{"dtype-lower", ONE(ENTRY("f32", "[2]", "[0,8]")), "unknown dtype"},
	{"dtype-empty", ONE(ENTRY("", "[2]", "[0,8]")), "unknown dtype"},
	{"dtype-nul", ONE(ENTRY("F32\\u0000", "[2]", "[0,8]")),
		"unknown dtype"},
	{"dtype-number",
		ONE("{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}"),
		"dtype is not a string"},
	{"dtype-null",
		ONE("{\"dtype\":null,\"shape\":[2],\"data_offsets\":[0,8]}"),
		"dtype is not a string"},
	{"dtype-wrong", ONE(ENTRY("F64", "[2]", "[0,8]")), "do not fit"},
	{"shape-number", ONE(ENTRY("F32", "2", "[0,8]")), "not an array"},
	{"shape-null", ONE(ENTRY("F32", "null", "[0,8]")), "not an array"},
	{"shape-object", ONE(ENTRY("F32", "{}", "[0,8]")), "not an array"},
	{"shape-nested", ONE(ENTRY("F32", "[[2]]", "[0,8]")), "not a number"},
	{"shape-string", ONE(ENTRY("F32", "[\"2\"]", "[0,8]")), "not a number"},
	{"shape-negative", ONE(ENTRY("F32", "[-2]", "[0,8]")),
		"not an integer"},
	{"shape-minus-zero", ONE(ENTRY("F32", "[-0]", "[0,0]")),
		"not an integer"},
	{"shape-fraction", ONE(ENTRY("F32", "[2.0]", "[0,8]")),
		"not an integer"},
	{"shape-exponent", ONE(ENTRY("F32", "[2e0]", "[0,8]")),
		"not an integer"},
	{"shape-leading-zero", ONE(ENTRY("F32", "[02]", "[0,8]")),
		"not a number"},
	{"shape-65-bits", ONE(ENTRY("F32", "[18446744073709551618]", "[0,8]")),
		"above 64 bits"},
	{"shape-small", ONE(ENTRY("F32", "[1]", "[0,8]")), "do not fit"},
	{"shape-large", ONE(ENTRY("F32", "[3]", "[0,8]")), "do not fit"},
	{"shape-zero", ONE(ENTRY("F32", "[0]", "[0,8]")), "do not fit"},
	{"product-overflow",
		ONE(ENTRY("F32", "[4294967296,4294967296,2]", "[0,8]")),
		"product of shape overflows"},
	{"product-overflow-then-zero",
		ONE(ENTRY("F32", "[9223372036854775808,2,0]", "[0,0]")),
		"product of shape overflows"},
	{"product-wraps-to-fit",
		ONE(ENTRY("U8", "[4294967297,4294967288]", "[0,8]")),
		"overflows"},
	{"dtype-overflow", ONE(ENTRY("F64", "[288230376151711745]", "[0,8]")),
		"size of shape and dtype overflows"},
	{"dtype-overflow-bits",
		ONE(ENTRY("U8", "[2305843009213693953]", "[0,8]")),
		"size of shape and dtype overflows"},
	{"half-byte", ONE(ENTRY("F4", "[15]", "[0,8]")), "whole number"},
	{"quarter-byte", ONE(ENTRY("F6_E2M3", "[10]", "[0,8]")),
		"whole number"},
	{"offsets-none", ONE(ENTRY("F32", "[2]", "[]")), "two integers"},
	{"offsets-one", ONE(ENTRY("F32", "[2]", "[8]")), "two integers"},
	{"offsets-three", ONE(ENTRY("F32", "[2]", "[0,8,8]")), "two integers"},
	{"offsets-strings", ONE(ENTRY("F32", "[2]", "[\"0\",\"8\"]")),
		"two integers"},
	{"offsets-object", ONE(ENTRY("F32", "[2]", "{}")), "two integers"},
	{"offsets-negative", ONE(ENTRY("F32", "[2]", "[-8,0]")),
		"not an integer"},
	{"offsets-fraction", ONE(ENTRY("F32", "[2]", "[0,8.0]")),
		"not an integer"},
	{"offsets-65-bits",
		ONE(ENTRY("F32", "[2]", "[0,18446744073709551624]")),
		"above 64 bits"},
	{"offsets-backwards", ONE(ENTRY("F32", "[2]", "[8,0]")), "backwards"},
	{"offsets-at-2^64",
		ONE(ENTRY("F32", "[0]",
			"[18446744073709551615,18446744073709551615]")),
		"leaving a hole"},
	{"size-of-2^61-less-1",
		ONE(ENTRY("U8", "[2305843009213693951]",
			"[0,2305843009213693951]")),
		"past the end"},
	{"aliased", TWO(PAIR, PAIR), "overlapping"},
	{"overlapping", TWO(PAIR, ENTRY("F32", "[1]", "[4,8]")), "overlapping"},
	{"overlapping-apart",
		"{\"a\":" ENTRY("U8", "[4]", "[0,4]") ",\"b\":" ENTRY("U8",
			"[4]",
			"[4,8]") ",\"c\":" ENTRY("U8", "[4]", "[0,4]") "}",
		"\"c\": begins at byte 0 of the data, overlapping what ends at "
		"4"},
	{"overlapping-backwards",
		TWO(ENTRY("U8", "[4]", "[4,8]"), ENTRY("U8", "[6]", "[0,6]")),
		"\"a\": begins at byte 4 of the data, overlapping what ends at "
		"6"},
	{"inside-another", TWO(PAIR, ENTRY("U8", "[1]", "[2,3]")),
		"overlapping"},
	{"empty-inside-another", TWO(PAIR, ENTRY("U8", "[0]", "[2,2]")),
		"overlapping"},
	{"hole-first", ONE(ENTRY("F32", "[1]", "[4,8]")), "leaving a hole"},
	{"hole-between",
		TWO(ENTRY("U8", "[3]", "[0,3]"), ENTRY("F32", "[1]", "[4,8]")),
		"leaving a hole"},
	{"empty-past-end", TWO(PAIR, ENTRY("U8", "[0]", "[9,9]")),
		"leaving a hole"},
	{"name-twice", "{\"a\":" PAIR ",\"a\":" PAIR "}", TWICE},
	{"name-twice-apart",
		"{\"a\":" ENTRY("U8", "[4]", "[0,4]") ",\"b\":" ENTRY(
			"U8", "[4]", "[4,8]") ",\"\\u0061\":" ENTRY("U8", "[4]",
			"[0,4]") "}",
		TWICE},
	{"name-twice-escaped", "{\"a\":" PAIR ",\"\\u0061\":" PAIR "}", TWICE},
	{"name-twice-slash", "{\"/\":" PAIR ",\"\\/\":" PAIR "}", TWICE},
	{"name-twice-pair",
		"{\"\xf0\x9f\x98\x80\":" PAIR ",\"\\ud83d\\ude00\":" PAIR "}",
		TWICE},
	{"name-twice-nul", "{\"\\u0000\":" PAIR ",\"\\u0000\":" PAIR "}",
		TWICE},
	{"name-twice-empty", "{\"\":" PAIR ",\"\":" PAIR "}", TWICE},
	{"name-twice-no-data",
		"{\"a\":" ENTRY("U8", "[0]", "[0,0]") ",\"a\":" PAIR "}",
		TWICE},
	{"dtype-twice",
		ONE("{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
		    "\"data_offsets\":[0,8]}"),
		TWICE},
	{"shape-twice-escaped",
		ONE("{\"dtype\":\"F32\",\"shape\":[2],\"\\u0073hape\":[2],"
		    "\"data_offsets\":[0,8]}"),
		TWICE},
	{"offsets-twice",
		ONE("{\"data_offsets\":[0,8],\"dtype\":\"F32\",\"shape\":[2],"
		    "\"data_offsets\":[0,8]}"),
		TWICE},
	{"field-twice", ONE("{\"x\":1,\"y\":2,\"x\":{}}"), TWICE},
	{"field-twice-escaped", ONE("{\"x\":1,\"\\u0078\":2}"), TWICE},
	{"metadata-twice",
		"{\"__metadata__\":{},\"a\":" PAIR ",\"__metadata__\":{}}",
		TWICE},
	{"metadata-twice-escaped",
		"{\"__metadata__\":{},\"\\u005f_metadata__\":{},\"a\":" PAIR
		"}",
		TWICE},
	{"metadata-between",
		"{\"a\":" PAIR
		",\"__metadata__\":{\"k\":\"\"},\"b\":" ENTRY("U8", "[0]",
			"[8,8]") ",\"c\":" ENTRY("U8", "[1]", "[9,10]") "}",
		"leaving a hole"},
	{"metadata-array", META("[]"), "not an object"},
	{"metadata-null", META("null"), "not an object"},
	{"metadata-entry", META("{\"dtype\":1}"), "not a string"},
	{"metadata-value-null", META("{\"k\":null}"), "not a string"},
	{"metadata-value-object", META("{\"k\":{}}"), "not a string"},
	{"metadata-key-twice", META("{\"k\":\"1\",\"l\":\"\",\"k\":\"2\"}"),
		TWICE},
	{"metadata-key-twice-escaped", META("{\"k\":\"1\",\"\\u006b\":\"1\"}"),
		TWICE},
};

/* Lengths that the header does not have; it is {} and 8 bytes of data. */
static const struct {
	const char *name;
	uint64_t length;
	const char *fact;
} lengths[] = {
	{"length-2^64-less-1", UINT64_MAX, "allowed"},
	{"length-2^64-less-8", UINT64_MAX - 7, "allowed"},
	{"length-2^64-less-10", UINT64_MAX - 9, "allowed"},
	{"length-2^63", UINT64_MAX / 2 + 1, "allowed"},
	{"length-2^32", (uint64_t)1 << 32, "allowed"},
	{"length-above-limit", 100000001, "allowed"},
	{"length-at-limit", 100000000, "past the end"},
	{"length-past-end", 11, "past the end"},
	{"length-0", 0, "ends too early"},
	{"length-1", 1, "ends too early"},
	{"length-3", 3, "bytes after the top value"},
};

struct emit {
	void (*f)(void *ctx, const char *name, const struct dl_buf *bytes,
		const char *alone, const char *stream);
	void *ctx;
	struct dl_buf bytes;
};

/* length, n bytes of json, and zeros as data. */
static void put(struct emit *m, uint64_t length, const void *json, size_t n,
	size_t data)
{
	unsigned char head[8];

	dl_put_le64(head, length);
	dl_buf_clear(&m->bytes);
	dl_buf_add(&m->bytes, head, sizeof head);
	dl_buf_add(&m->bytes, json, n);
	while (data--)
		dl_buf_byte(&m->bytes, 0);
}

static void emit(struct emit *m, const char *name, const char *fact)
{
	m->f(m->ctx, name, &m->bytes, fact, fact);
}

/* A good record cut after each of its bytes but the last. */
static void truncated(struct emit *m)
{
	static const char json[] = ONE(PAIR);
	size_t n = sizeof json - 1;
	char name[32];

	put(m, n, json, n, 8);
	for (size_t i = m->bytes.len - 1; i > 0; i--) {
		m->bytes.len = i;
		snprintf(name, sizeof name, "truncated-%03zu", i);
		emit(m, name,
			i < 8 ? "ends inside a header's length"
			      : "past the end");
	}
}

static void trailing(struct emit *m)
{
	static const char json[] = ONE(PAIR);
	size_t n = sizeof json - 1;

	put(m, n, json, n, 9);
	m->f(m->ctx, "trailing-byte", &m->bytes, "1 bytes follow the data",
		"ends inside a header's length");
	put(m, n, json, n, 16);
	m->f(m->ctx, "trailing-zeros", &m->bytes, "8 bytes follow the data",
		"ends too early");
	put(m, n, json, n, 8);
	dl_buf_str(&m->bytes, "\n");
	m->f(m->ctx, "trailing-newline", &m->bytes, "1 bytes follow the data",
		"ends inside a header's length");
}

/* Raw NUL bytes, which string literals above would end at. */
static void with_nul(struct emit *m)
{
	static const char after[] = ONE(PAIR) "\0\0\0";
	static const char inside[] = "{\"a\0\":" PAIR "}";

	put(m, sizeof after - 1, after, sizeof after - 1, 8);
	emit(m, "padded-with-nul", "bytes after the top value");
	put(m, sizeof inside - 1, inside, sizeof inside - 1, 8);
	emit(m, "nul-in-name", "control character");
}

/* n times one text between two others, %zu in it being the index. */
static void repeated(struct emit *m, const char *name, const char *first,
	const char *fmt, const char *last, size_t n, const char *fact)
{
	struct dl_buf json = DL_BUF_INIT;
	char text[128];

	dl_buf_str(&json, first);
	for (size_t i = 0; i < n; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof text, fmt, i);
#pragma GCC diagnostic pop
		dl_buf_str(&json, text + !i);
	}
	dl_buf_str(&json, last);
	put(m, json.len, json.data, json.len, 8);
	emit(m, name, fact);
	dl_buf_free(&json);
}

/* What costs memory or time when it is read without care. In each repeated
 * text the first byte is the comma that the first one goes without. */
static void large(struct emit *m)
{
	repeated(m, "million-over-one-range", "{",
		",\"%zu\":" ENTRY("U8", "[8]", "[0,8]"), "}", 1000000,
		"overlapping");
	repeated(m, "million-over-two-ranges", "{",
		",\"%1$zu\":" ENTRY("U8", "[4]", "[0,4]") ",\"-%1$zu\":" ENTRY(
			"U8", "[4]", "[4,8]"),
		"}", 500000, "overlapping");
	repeated(m, "million-of-one-name", "{",
		",\"\":" ENTRY("U8", "[]", "[0,1]") ",\"\":" ENTRY(
			"U8", "[]", "[1,2]"),
		"}", 500000, TWICE);
	repeated(m, "million-without-hole-but-one", "{",
		",\"%zu\":" ENTRY("U8", "[0]", "[1,1]"), "}", 100000,
		"leaving a hole");
	repeated(m, "million-brackets", "{\"a\":{\"x\":", "[[", "}", 500000,
		"nested too deep");
	repeated(m, "million-dimensions", "{\"a\":{\"shape\":[", ",1", "]}}",
		1000000, "is missing");
	repeated(m, "million-unknown-fields", "{\"a\":{", ",\"%zu\":0", "}}",
		1000000, "too many unknown fields");
	repeated(m, "million-pairs-of-one-key", "{\"__metadata__\":{",
		",\"a long key\":\"a long value, many times\"", "}}", 100000,
		TWICE);
	repeated(m, "million-pairs-without-text", "{\"__metadata__\":{",
		",\"\":\"\"", "}}", 100000, TWICE);
	repeated(m, "million-letters", "{\"", "abcdefgh", "", 125000,
		"ends inside a string");
}

void malformed_each(
	void (*f)(void *ctx, const char *name, const struct dl_buf *bytes,
		const char *alone, const char *stream),
	void *ctx)
{
	struct emit m = {f, ctx, DL_BUF_INIT};

	for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
		size_t n = strlen(headers[i].json);

		put(&m, n, headers[i].json, n, 8);
		emit(&m, headers[i].name, headers[i].fact);
	}
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		put(&m, lengths[i].length, "{}", 2, 8);
		emit(&m, lengths[i].name, lengths[i].fact);
	}
	truncated(&m);
	trailing(&m);
	with_nul(&m);
	large(&m);
	dl_buf_free(&m.bytes);
}
