/*
 * Any text as a model's config.json: refused with 65 and a text, or a shape
 * that is written, and read again as itself.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "train/config.h"

static int same(const struct dl_config *a, const struct dl_config *b)
{
	return a->layers == b->layers && a->heads == b->heads &&
	       a->kv_heads == b->kv_heads && a->width == b->width &&
	       a->inner == b->inner && a->vocab == b->vocab &&
	       a->context == b->context && a->tied == b->tied &&
	       a->eps == b->eps && a->theta == b->theta;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_err e = {0};
	struct dl_config c, again;
	int code = dl_config_parse(&c, data, n, &e);

	if (code) {
		if (code != DL_DATA || e.code != DL_DATA || !e.text[0])
			abort();
		return 0;
	}
	dl_config_write(&c, &text);
	if (dl_config_check(&c, NULL) ||
		dl_config_parse(&again, text.data, text.len, NULL) ||
		!same(&c, &again))
		abort();
	dl_buf_free(&text);
	return 0;
}
