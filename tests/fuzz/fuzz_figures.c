/*
 * Any bytes as the figures of a run: refused, or written again as something
 * that is taken, and shown.
 */
#include <stdlib.h>

#include "figures.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_stat s;

	dl_stat_init(&s);
	if (!dl_figures_parse(&s, (const char *)data, n, &e))
		figures_cross(&s);
	else if (e.code != DL_DATA || !e.text[0])
		abort();
	dl_stat_release(&s);
	return 0;
}
