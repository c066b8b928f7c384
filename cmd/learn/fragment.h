/*
 * Fragments in files, as learner and trainer hand them to each other.
 */
#ifndef CMD_LEARN_FRAGMENT_H
#define CMD_LEARN_FRAGMENT_H

#include "tensor/layout.h"

/* Writes a record of fragment p's values, or of values - less, in place: a
 * trainer reads it before the next. Both are packed arrays. */
int fragment_write(const struct dl_layout *l, uint32_t p, const float *values,
	const float *less, const char *path, struct dl_err *e);

/* Reads fragment p's values from a trainer's file, which may hold more, in any
 * order and any dtype of numbers. 65 when it does not hold the fragment. */
int fragment_read(const struct dl_layout *l, uint32_t p, float *out,
	const char *path, struct dl_err *e);

#endif
