#include "train/launcher.h"

#include <stdlib.h>
#include <string.h>

/* How many processes, by Open MPI and by MPICH; and who of them, by all that
 * have PMIx. */
static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
static const char *const rank = "PMIX_RANK";

int dl_launched(void)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const char *size = getenv(sizes[i]);

		if (size)
			return strcmp(size, "1") != 0;
	}
	return getenv(rank) != NULL;
}

static int is(const char *variable, const char *name)
{
	size_t n = strlen(name);

	return strncmp(variable, name, n) == 0 && variable[n] == '=';
}

int dl_launcher_says(const char *variable)
{
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (is(variable, sizes[i]))
			return 1;
	return is(variable, rank);
}
