/*
 * Any bytes through the JSON parser: it ends, refuses with 65 and a text, and
 * what it takes as one string comes back when it is quoted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"

static void check_string(const struct dl_json *j)
{
	struct dl_buf quoted = DL_BUF_INIT;
	struct dl_json again;

	dl_json_quote(&quoted, j->text, j->len);
	dl_json_init(&again, quoted.data, quoted.len, NULL);
	if (dl_json_next(&again) != DL_JSON_STRING || again.len != j->len ||
		memcmp(again.text, j->text, j->len) != 0 ||
		dl_json_next(&again) != DL_JSON_END)
		abort();
	dl_json_release(&again);
	dl_buf_free(&quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_json j;
	enum dl_json_token t;
	uint64_t u;
	double d;

	dl_json_init(&j, data, n, &e);
	while ((t = dl_json_next(&j)) != DL_JSON_END && t != DL_JSON_BAD) {
		if (j.offset > n)
			abort();
		if (t == DL_JSON_STRING || t == DL_JSON_KEY)
			check_string(&j);
		if (t == DL_JSON_NUMBER) {
			dl_json_u64(&j, &u);
			dl_json_double(&j, &d);
		}
	}
	if (t == DL_JSON_BAD && (e.code != DL_DATA || !e.text[0]))
		abort();
	dl_json_release(&j);
	return 0;
}
