/*
 * The ranks of a learner: the processes of one MPI job, which train one model
 * together. NULL is a process alone, for which all of these do nothing; where
 * MPI's module (mpi.h) is not installed there is no other. What fails between
 * ranks ends the job, as MPI has it. Only the main thread calls.
 *
 * Sums are made in the order of ranks, so that as many ranks give the same bits
 * however MPI would have gone about it.
 */
#ifndef DL_TRAIN_RANKS_H
#define DL_TRAIN_RANKS_H

#include <stddef.h>

#include "base/err.h"

struct dl_ranks;

/* Joins the job that a launcher started this process for; NULL into *r when
 * none did. 69 when one did and there is no MPI. */
int dl_ranks_join(struct dl_ranks **r, struct dl_err *e);
/* Waits for all to leave. Who exits without takes the job along. */
void dl_ranks_leave(struct dl_ranks *r);

size_t dl_ranks_count(const struct dl_ranks *r); /* 1 for NULL */
size_t dl_ranks_rank(const struct dl_ranks *r);	 /* 0 for NULL */

/* Rank 0's n bytes go to all. */
void dl_ranks_share(struct dl_ranks *r, void *data, size_t n);
/* The same, of a few bytes that may be long in coming: who waits sleeps. */
void dl_ranks_order(struct dl_ranks *r, void *data, size_t n);

/* x becomes the sum of the n numbers that each rank has there. */
void dl_ranks_sum(struct dl_ranks *r, float *x, size_t n);

/* Every rank's size bytes go to all, one after another in `all`; for NULL, too,
 * the own ones. */
void dl_ranks_gather(
	struct dl_ranks *r, const void *own, size_t size, void *all);

/* The sum of every rank's x. */
double dl_ranks_total(struct dl_ranks *r, double x);

/* Each rank has got rc, and e says why. To all: 0 when all have got 0, else the
 * code and the words of the first that failed. */
int dl_ranks_agree(struct dl_ranks *r, int rc, struct dl_err *e);

#endif
