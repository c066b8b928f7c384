/*
 * Joining records into a model: the params (or global) records of a set, or a
 * base model and what replaces (params, global) or is added to (delta) its
 * tensors.
 */
#ifndef DL_TENSOR_JOIN_H
#define DL_TENSOR_JOIN_H

#include "tensor/layout.h"
#include "tensor/model.h"
#include "tensor/save.h"

struct dl_join {
	struct dl_model *parts;	      /* every record, added but not listed */
	const struct dl_model *base;  /* or NULL */
	const struct dl_layout *layout; /* or NULL */
};

int dl_join_is_delta(const struct dl_header *h);

/*
 * Lists parts and checks that they make a model. 65 names what is missing,
 * what comes twice, or what disagrees: kinds, runs, layouts, shapes, dtypes.
 * What is wanted is known from the layout, else from dl.fragments and
 * dl.records in the records themselves; with a base nothing is missing.
 */
int dl_join_check(const struct dl_join *j, struct dl_err *e);

/*
 * Saves the model, after dl_join_check. Tensors have the dtype
 * of the base, else of the layout, else of their record. With a layout, tied
 * tensors that are in no record are copies of what they are tied to.
 */
int dl_join_write(const struct dl_join *j, const struct dl_save *s,
	struct dl_err *e);

#endif
