#include "train/ranks.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "train/kernels.h"
#include "train/launcher.h"
#include "train/mpi.h"

static const char module[] = "dl-mpi.so";

enum {
	STRETCH = 1 << 18, /* numbers that a rank sums at once */
	SHARED = 1 << 30,  /* bytes of one message */
};

struct dl_ranks {
	const struct dl_mpi *mpi;
	int rank, count;
	/* Of what is summed at once: each rank's stretch, and the copies of
	 * this rank's own that come from each. */
	int *size, *at;
	int *copy_size, *copy_at;
	float *copies;
};

/* NULL when there is none. */
static void *open_module(const char *folder)
{
	char *path = dl_sprintf("%s/%s", folder, module);
	void *m = access(path, F_OK) ? NULL
				     : dlopen(path, RTLD_NOW | RTLD_GLOBAL);

	free(path);
	return m;
}

/* Beside the program, as it is where it was built, or where it is installed. */
static const struct dl_mpi *load(void)
{
	char program[4096];
	ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
	void *m = NULL;

	if (n > 0) {
		program[n] = '\0';
		*strrchr(program, '/') = '\0';
		m = open_module(program);
	}
	if (!m)
		m = open_module(DL_MODULES);
	return m ? dlsym(m, "dl_mpi") : NULL;
}

static int *numbers(const struct dl_ranks *r)
{
	return dl_alloc_array((size_t)r->count, sizeof(int));
}

int dl_ranks_join(struct dl_ranks **out, struct dl_err *e)
{
	const struct dl_mpi *mpi;
	struct dl_ranks *r;

	*out = NULL;
	if (!dl_launched())
		return 0;
	mpi = load();
	if (!mpi)
		return dl_fail(e, DL_UNAVAILABLE,
			"started as one of several processes, but %s is not "
			"there: built without MPI",
			module);
	r = *out = dl_alloc(sizeof *r);
	r->mpi = mpi;
	mpi->join(&r->rank, &r->count);
	r->size = numbers(r);
	r->at = numbers(r);
	r->copy_size = numbers(r);
	r->copy_at = numbers(r);
	r->copies =
		dl_alloc_array((size_t)r->count * STRETCH, sizeof *r->copies);
	return 0;
}

void dl_ranks_leave(struct dl_ranks *r)
{
	if (!r)
		return;
	r->mpi->leave();
	free(r->size);
	free(r->at);
	free(r->copy_size);
	free(r->copy_at);
	free(r->copies);
	free(r);
}

size_t dl_ranks_count(const struct dl_ranks *r)
{
	return r ? (size_t)r->count : 1;
}

size_t dl_ranks_rank(const struct dl_ranks *r)
{
	return r ? (size_t)r->rank : 0;
}

void dl_ranks_share(struct dl_ranks *r, void *data, size_t n)
{
	char *p = data;

	for (size_t at = 0; r && at < n; at += SHARED)
		r->mpi->share(p + at, (int)(n - at < SHARED ? n - at : SHARED));
}

void dl_ranks_order(struct dl_ranks *r, void *data, size_t n)
{
	if (r)
		r->mpi->order(data, (int)n);
}

/* Each rank sums its stretch of the n numbers, and gives it to all. */
static void sum_stretches(struct dl_ranks *r, float *x, size_t n)
{
	size_t count = (size_t)r->count, rank = (size_t)r->rank;
	size_t own = n * rank / count, m = n * (rank + 1) / count - own;

	for (size_t i = 0; i < count; i++) {
		r->at[i] = (int)(n * i / count);
		r->size[i] = (int)(n * (i + 1) / count) - r->at[i];
		r->copy_at[i] = (int)(i * m);
		r->copy_size[i] = (int)m;
	}
	r->mpi->exchange(
		x, r->size, r->at, r->copies, r->copy_size, r->copy_at);
	memcpy(x + own, r->copies, m * sizeof *x);
	for (size_t i = 1; i < count; i++)
		dl_train_kernels()->add(x + own, r->copies + i * m, m);
	r->mpi->collect(x, r->size, r->at);
}

void dl_ranks_sum(struct dl_ranks *r, float *x, size_t n)
{
	size_t most = STRETCH * dl_ranks_count(r);

	for (size_t at = 0; r && at < n; at += most)
		sum_stretches(r, x + at, n - at < most ? n - at : most);
}

void dl_ranks_gather(
	struct dl_ranks *r, const void *own, size_t size, void *all)
{
	if (r)
		r->mpi->gather(own, (int)size, all);
	else
		memcpy(all, own, size);
}

double dl_ranks_total(struct dl_ranks *r, double x)
{
	size_t n = dl_ranks_count(r);
	double *all = dl_alloc_array(n, sizeof *all), sum = 0;

	dl_ranks_gather(r, &x, sizeof x, all);
	for (size_t i = 0; i < n; i++)
		sum += all[i];
	free(all);
	return sum;
}

int dl_ranks_agree(struct dl_ranks *r, int rc, struct dl_err *e)
{
	size_t n = dl_ranks_count(r), i = 0;
	struct dl_err *all;

	if (!r)
		return rc;
	all = dl_alloc_array(n, sizeof *all);
	if (!rc)
		memset(e, 0, sizeof *e);
	dl_ranks_gather(r, e, sizeof *e, all);
	while (i < n && !all[i].code)
		i++;
	if (i < n) {
		*e = all[i];
		rc = e->code;
		if (i)
			dl_at(e, "rank %zu", i);
	}
	free(all);
	return rc;
}
