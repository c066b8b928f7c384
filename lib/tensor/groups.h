/*
 * Which tensors of a learner's state belong together: what a newcomer takes
 * from one peer or another, fragment by fragment.
 *
 * A state is one record of parameters, optimizer tensors and counters. A tensor
 * is of the fragment of the layout's tensor T when its name is T or ends in .T,
 * as exp_avg.T does; of several such T the longest. The tensors of a fragment
 * are its group; those of none are one more, the last.
 */
#ifndef DL_TENSOR_GROUPS_H
#define DL_TENSOR_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tensor/layout.h"

struct dl_groups {
	size_t groups;	/* P and 1 */
	size_t *first;	/* groups + 1: of group g are member[first[g]] to, not
			 * with, member[first[g + 1]] */
	size_t *member; /* indices of the header's tensors, by offset */
};

/* 65 when h lacks a tensor of l (aliases aside), has it in another shape, or in
 * a dtype that is no number; g is then empty. */
int dl_groups_make(struct dl_groups *g, const struct dl_layout *l,
	const struct dl_header *h, struct dl_err *e);
void dl_groups_release(struct dl_groups *g);

/*
 * Bytes of h's data that follow each other, from member *at of g on, which ends
 * before member[end]: 1 with *offset and *bytes > 0, and *at behind them; 0
 * when there are no more.
 */
int dl_groups_range(const struct dl_groups *g, const struct dl_header *h,
	size_t *at, size_t end, uint64_t *offset, uint64_t *bytes);

/* Do both have the same tensors at the same places? Then what is whole of one
 * can be completed from the other. */
int dl_groups_same(const struct dl_header *a, const struct dl_header *b);

#endif
