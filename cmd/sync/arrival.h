/*
 * What can be known of a push while it comes: the norm of each of its tensors,
 * and its inner products with the pushes it may be merged with. A block's are
 * made when the last of those that are here or coming has it, of all at once.
 * So that, when the last push of a round is here, one reading of them all is
 * what is left to do.
 */
#ifndef CMD_SYNC_ARRIVAL_H
#define CMD_SYNC_ARRIVAL_H

#include "merge/merge.h"
#include "tensor/coded.h"

struct push;
struct pushes;

struct arrival {
	size_t *order; /* tensors of the push by where their data end */
	size_t at;     /* in order: the one that comes now */
	uint64_t *done; /* a tensor: its elements that were taken */
	double *square; /* a tensor: the sum of their squares */
	struct product {
		struct product *next;
		const struct push *with;
		uint64_t *done; /* a tensor: its elements that are in */
		double *sum;
	} * product;  /* with those that were there before */
	size_t place; /* among those of which a block's products are made */
};

/* A push that is to come, the first of its fragment's list. */
void arrival_begin(struct pushes *s, struct push *push);
/* So many bytes of its data are there. Of a push that this is not called for
 * nothing is known, and it is read once more when it is merged. */
void arrival_take(struct pushes *s, struct push *push, uint64_t bytes);
/* All of it was taken. */
int arrival_complete(const struct push *push);
/* It is gone: nobody has products with it any more. */
void arrival_end(struct pushes *s, struct push *push);

/* Its norm, once it is complete. */
double arrival_norm(const struct push *push);
/* The products of x and y, a tensor each; NULL when they are not known. */
const double *arrival_products(
	const struct pushes *s, const struct push *x, const struct push *y);

#endif
