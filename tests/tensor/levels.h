/*
 * A test that runs itself once a level of the CPU: main calls at_all_levels
 * and, in each of those runs, the checks.
 */
#ifndef TESTS_TENSOR_LEVELS_H
#define TESTS_TENSOR_LEVELS_H

#include <stdlib.h>

#include "base/cpu.h"
#include "base/mem.h"

#include "../tap.h"

/* 0 in the run of a level, where the checks are to be made. */
static inline int at_all_levels(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < DL_CPU_LEVELS; i++) {
		const char *level = dl_cpu_name((enum dl_cpu)i);
		char *command =
			dl_sprintf("DL_CPU=%s '%s' it >&2", level, argv[0]);

		ok(!system(command), "at %s", level);
		free(command);
	}
	return 1;
}

#endif
