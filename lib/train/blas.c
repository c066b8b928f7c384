#include "train/blas.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "train/gemm.h"

static const char threads[] = "OPENBLAS_NUM_THREADS";

__typeof__(cblas_sgemm) *dl_blas_sgemm;

/* It reads the variable when it starts: threads of its own would only wait. */
static void *load(void)
{
	const char *given = getenv(threads);
	void *blas;

	if (!given)
		setenv(threads, "1", 1);
	blas = dlopen(DL_BLAS, RTLD_LAZY);
	if (!given)
		unsetenv(threads);
	return blas;
}

int dl_blas_load(struct dl_err *e)
{
	__typeof__(openblas_set_num_threads) *set_threads;
	void *blas = load();

	set_threads = blas ? dlsym(blas, "openblas_set_num_threads") : NULL;
	dl_blas_sgemm = set_threads ? dlsym(blas, "cblas_sgemm") : NULL;
	if (!dl_blas_sgemm)
		return dl_fail(e, DL_UNAVAILABLE, "%s", dlerror());
	set_threads(1);
	return 0;
}
