/*
 * What figures are worth as text: written, they are taken, and written again
 * the same.
 */
#ifndef TESTS_FUZZ_FIGURES_H
#define TESTS_FUZZ_FIGURES_H

#include <stdlib.h>

#include "same.h"
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
	check_same(&once, &twice);
	dl_stat_release(&again);
}

#endif
