/*
 * A model of very many tensors, for what must not take long on one.
 */
#ifndef TESTS_TENSOR_MANY_H
#define TESTS_TENSOR_MANY_H

#include "tensor/layout.h"

/*
 * The header of a file of n tensors of BF16 in an order that the seed shuffles:
 * w0 has 60% of all elements. Returns the bytes of data that follow it.
 */
uint64_t many_header(struct dl_buf *header, uint64_t seed, size_t n);

/* The same as a model, from a file without a name; its data are zeros. */
void many_open(struct dl_model *m, uint64_t seed, size_t n);

/* Ties one in ten to the one before: the choices for a plan; many_untie frees
 * them. */
size_t many_tie(struct dl_plan_choice **choice, size_t n);
void many_untie(struct dl_plan_choice *choice, size_t choices);

#endif
