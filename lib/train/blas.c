#include "train/blas.h"

#include <stdlib.h>

#include "base/library.h"
#include "train/gemm.h"

static const char threads[] = "OPENBLAS_NUM_THREADS";
static const char *const names[] = {"cblas_sgemm", "openblas_set_num_threads"};

struct dl_blas dl_blas;

/* It reads the variable when it starts: threads of its own would only wait. */
int dl_blas_load(struct dl_err *e)
{
	const char *given = getenv(threads);
	int rc;

	if (!given)
		setenv(threads, "1", 1);
	rc = dl_library_load(
		DL_BLAS, names, sizeof names / sizeof *names, &dl_blas, e);
	if (!given)
		unsetenv(threads);
	if (!rc)
		dl_blas.set_num_threads(1);
	return rc;
}
