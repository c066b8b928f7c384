/*
 * What figures are worth as text: written, they are taken, and written again
 * the same.
 */
#ifndef TESTS_FUZZ_FIGURES_H
#define TESTS_FUZZ_FIGURES_H

#include <stdlib.h>
#include <string.h>

#include "state/figures.h"

static inline void figures_cross(const struct dl_stat *s)
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

#endif
