/*
 * Any bytes as the figures of a run: refused, or written again as something
 * that is taken, and shown.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "state/figures.h"

static void cross(const struct dl_stat *s)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;
	struct dl_stat again;

	dl_figures_write(&once, s);
	dl_stat_init(&again);
	if (dl_figures_parse(&again, (char *)once.data, once.len, NULL))
		abort();
	dl_figures_write(&twice, &again);
	if (once.len != twice.len ||
		memcmp(once.data, twice.data, once.len) != 0)
		abort();
	dl_stat_release(&again);
	dl_buf_free(&once);
	dl_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_stat s;

	dl_stat_init(&s);
	if (!dl_figures_parse(&s, (const char *)data, n, &e))
		cross(&s);
	else if (e.code != DL_DATA || !e.text[0])
		abort();
	dl_stat_release(&s);
	return 0;
}
