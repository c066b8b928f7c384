/*
 * Any bytes as a HEAD: refused with 65 and a text, or written again in the one
 * spelling that its content has.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "same.h"
#include "state/head.h"

static void check_spelling(const struct dl_head *h)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;
	struct dl_head again;

	dl_head_write(&once, h);
	if (dl_head_parse(&again, once.data, once.len, NULL))
		abort();
	dl_head_write(&twice, &again);
	check_same(&once, &twice);
	dl_head_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_head h;
	int rc = dl_head_parse(&h, data, n, &e);

	if (!rc)
		check_spelling(&h);
	else if (rc != DL_DATA || e.code != DL_DATA || !e.text[0])
		abort();
	dl_head_release(&h);
	return 0;
}
