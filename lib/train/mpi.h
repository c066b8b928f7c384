/*
 * What ranks.c asks of MPI, as a table in a module of its own, dl-mpi.so: with
 * MPI's libraries dl-train would take longer to start, and only the processes
 * of a job use them. A build without MPI lacks the module.
 */
#ifndef DL_TRAIN_MPI_H
#define DL_TRAIN_MPI_H

struct dl_mpi {
	void (*join)(int *rank, int *count);
	void (*leave)(void);
	/* Rank 0's n bytes, to all; order for those who may wait long. */
	void (*share)(void *data, int n);
	void (*order)(void *data, int n);
	/* Each rank's n bytes, to all. */
	void (*gather)(const void *own, int n, void *all);
	/* size[i] numbers at from + at[i] go to rank i, and to_size[i] come
	 * from it to `to` + to_at[i]. */
	void (*exchange)(const float *from, const int *size, const int *at,
		float *to, const int *to_size, const int *to_at);
	/* Rank i's size[i] numbers at x + at[i], to all, in place. */
	void (*collect)(float *x, const int *size, const int *at);
};

#endif
