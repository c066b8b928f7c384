#include "train/mpi.h"

#include <mpi.h>
#include <time.h>

enum { NAP = 100 * 1000 }; /* nanoseconds between two looks for an order */

extern const struct dl_mpi dl_mpi;

static void join(int *rank, int *count)
{
	int level;

	MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, count);
}

static void leave(void)
{
	MPI_Finalize();
}

static void share(void *data, int n)
{
	MPI_Bcast(data, n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

/* MPI's own waiting takes all of a CPU. */
static void order(void *data, int n)
{
	const struct timespec nap = {.tv_nsec = NAP};
	MPI_Request request;
	int done = 0;

	MPI_Ibcast(data, n, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
	MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	while (!done) {
		nanosleep(&nap, NULL);
		MPI_Test(&request, &done, MPI_STATUS_IGNORE);
	}
}

static void gather(const void *own, int n, void *all)
{
	MPI_Allgather(own, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD);
}

static void exchange(const float *from, const int *size, const int *at,
	float *to, const int *to_size, const int *to_at)
{
	MPI_Alltoallv(from, size, at, MPI_FLOAT, to, to_size, to_at, MPI_FLOAT,
		MPI_COMM_WORLD);
}

static void collect(float *x, const int *size, const int *at)
{
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, x, size, at,
		MPI_FLOAT, MPI_COMM_WORLD);
}

const struct dl_mpi dl_mpi = {
	join, leave, share, order, gather, exchange, collect};
