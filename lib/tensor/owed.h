/*
 * Error feedback: what encoding lost, kept in a file of records of kind
 * "error", one a fragment, until it is added to what is encoded next.
 */
#ifndef DL_TENSOR_OWED_H
#define DL_TENSOR_OWED_H

#include "tensor/encode.h"

/* Opens the file, or nothing (no records) when there is none yet; 65 when it
 * holds records of another kind. Close it also after a failure. */
int dl_owed_open(struct dl_records *owed, const char *path, struct dl_err *e);

/* Do two records speak of the same fragment, or both of none? */
int dl_owed_same_fragment(const struct dl_header *a, const struct dl_header *b);

/*
 * 1 and the record of h's fragment, or 0 when there is none; 65 when it is of
 * another layout, learner or run.
 */
int dl_owed_find(const struct dl_records *owed, const struct dl_header *h,
	size_t *record, struct dl_err *e);

/* Writes the record of what encoding loses. */
int dl_owed_write(
	const struct dl_encode *n, struct dl_output *o, struct dl_err *e);

#endif
