/* The JSON parser: what it takes, what it refuses, and the string escape. */
#include "base/json.h"

#include <string.h>

#include "../tap.h"

static const char *const good[] = {
	"{}",
	" [ ] \r\n\t",
	"null",
	"\"\"",
	"[true,false,null,0,-0,1.5e+3,-1E-2]",
	"{\"a\":{\"b\":[[],{}]},\"c\":1}",
	"\"\\u0000\\ud83d\\ude00\\/\\b\"",
	"\"\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xf4\x8f\xbf\xbf\"",
	"[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
};

static const char *const wrong[] = {
	"",
	" ",
	"{",
	"[1,]",
	"[,1]",
	"[1 2]",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{,}",
	"{1:2}",
	"{\"a\" 1}",
	"{\"a\",1}",
	"[\"a\":1]",
	"[1}",
	"{]",
	"]",
	"01",
	"-",
	"+1",
	"1.",
	".5",
	"1e",
	"1e+",
	"0x1",
	"NaN",
	"tru",
	"nulll",
	"{} {}",
	"{},",
	"\"",
	"\"\\",
	"\"\\\"",
	"\"\\x\"",
	"\"\\u12\"",
	"\"\\u12g4\"",
	"\"\\ud800\"",
	"\"\\ud800\\n12345\"",
	"\"\\ud800\\ud800\"",
	"\"\\udc00\"",
	"\"\n\"",
	"\"\x1f\"",
	"\"\x80\"",
	"\"\xc0\x80\"",
	"\"\xc1\xbf\"",
	"\"\xe0\x9f\xbf\"",
	"\"\xed\xa0\x80\"",
	"\"\xf0\x8f\xbf\xbf\"",
	"\"\xf4\x90\x80\x80\"",
	"\"\xf5\x80\x80\x80\"",
	"\"\xe2\x82\"",
	"\xef\xbb\xbf{}",
	"'a'",
	"// a\n1",
	"[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]",
};

/* The last token, DL_JSON_END or DL_JSON_BAD. */
static enum dl_json_token read_all(const char *s, size_t n, struct dl_err *e)
{
	struct dl_json j;
	enum dl_json_token t;

	dl_json_init(&j, s, n, e);
	do
		t = dl_json_next(&j);
	while (t != DL_JSON_END && t != DL_JSON_BAD);
	if (t == DL_JSON_BAD && dl_json_next(&j) != DL_JSON_BAD)
		t = DL_JSON_END;
	dl_json_release(&j);
	return t;
}

static void test_grammar(void)
{
	struct dl_err e;
	char shown[80];

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		ok(read_all(good[i], strlen(good[i]), &e) == DL_JSON_END,
			"takes %s",
			dl_scrub(
				shown, sizeof shown, good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		e.code = 0;
		ok(read_all(wrong[i], strlen(wrong[i]), &e) == DL_JSON_BAD &&
				e.code == DL_DATA,
			"refuses %s",
			dl_scrub(shown, sizeof shown, wrong[i],
				strlen(wrong[i])));
	}
	ok(read_all("\"a\0b\"", 5, &e) == DL_JSON_BAD, "refuses a raw NUL");
	ok(read_all("1\0", 2, &e) == DL_JSON_BAD, "refuses NUL after the top");
}

static void test_tokens(void)
{
	static const char in[] =
		" {\"k\\u0041\":[1,\"x\\u0000\\ud83d\\ude00\",{\"y\":[0]}],"
		"\"n\":18446744073709551615}";
	struct dl_json j;
	struct dl_err e;
	uint64_t u = 0;

	dl_json_init(&j, in, sizeof in - 1, &e);
	ok(dl_json_next(&j) == DL_JSON_OBJECT && j.offset == 1, "object");
	ok(dl_json_next(&j) == DL_JSON_KEY && dl_json_is(&j, "kA") && j.offset == 2,
		"key, decoded");
	ok(dl_json_next(&j) == DL_JSON_ARRAY, "array");
	ok(dl_json_next(&j) == DL_JSON_NUMBER && !dl_json_u64(&j, &u) && u == 1,
		"number");
	ok(dl_json_next(&j) == DL_JSON_STRING && j.len == 6 &&
			!memcmp(j.text, "x\0\xf0\x9f\x98\x80", 6),
		"string with NUL and a surrogate pair");
	ok(!dl_json_skip(&j, dl_json_next(&j)), "skips a value");
	ok(dl_json_next(&j) == DL_JSON_ARRAY_END, "end of array");
	ok(dl_json_next(&j) == DL_JSON_KEY, "key");
	ok(dl_json_next(&j) == DL_JSON_NUMBER && !dl_json_u64(&j, &u) &&
			u == UINT64_MAX,
		"largest integer");
	ok(dl_json_next(&j) == DL_JSON_OBJECT_END, "end of object");
	ok(dl_json_next(&j) == DL_JSON_END, "end");
	dl_json_release(&j);
}

static void test_numbers(void)
{
	static const char *const inexact[] = {"18446744073709551616",
		"99999999999999999999", "-1", "-0", "1.0", "1e2"};
	struct dl_json j;
	struct dl_err e;
	uint64_t u;
	double d;

	for (size_t i = 0; i < sizeof inexact / sizeof *inexact; i++) {
		dl_json_init(&j, inexact[i], strlen(inexact[i]), &e);
		dl_json_next(&j);
		ok(dl_json_u64(&j, &u) == DL_DATA, "%s is no integer",
			inexact[i]);
		ok(!dl_json_double(&j, &d) && d == atof(inexact[i]), "but %g",
			d);
		dl_json_release(&j);
	}
	dl_json_init(&j, "1e999", 5, &e);
	dl_json_next(&j);
	ok(dl_json_double(&j, &d) == DL_DATA, "1e999 is refused");
	dl_json_release(&j);
}

static void test_quote(void)
{
	static const char in[] = "a\"\\\n\x01\0\xc3\xa9";
	struct dl_buf b = DL_BUF_INIT;
	struct dl_json j;
	struct dl_err e;

	dl_json_quote(&b, in, sizeof in - 1);
	ok(!strcmp(dl_buf_cstr(&b), "\"a\\\"\\\\\\n\\u0001\\u0000\xc3\xa9\""),
		"quoted: %s", dl_buf_cstr(&b));
	dl_json_init(&j, b.data, b.len, &e);
	ok(dl_json_next(&j) == DL_JSON_STRING && j.len == sizeof in - 1 &&
			!memcmp(j.text, in, sizeof in - 1),
		"and read back");
	dl_json_release(&j);
	dl_buf_free(&b);
}

int main(void)
{
	test_grammar();
	test_tokens();
	test_numbers();
	test_quote();
	return done_testing();
}
