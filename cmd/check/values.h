/*
 * The values of a whole model, fragment by fragment: packed f32 arrays.
 */
#ifndef CMD_CHECK_VALUES_H
#define CMD_CHECK_VALUES_H

#include "tensor/layout.h"

float **values_new(const struct dl_layout *l);
void values_free(const struct dl_layout *l, float **v); /* NULL is fine */

/* Reads all of them from a model. */
int values_read(const struct dl_layout *l, float **v, const char *path,
	struct dl_err *e);

/* to = a from + b other, in f32. */
void values_mix(const struct dl_layout *l, float **to, float a, float **from,
	float b, float **other);
/* Numbers of about the model's size, other ones for another seed. */
void values_draw(const struct dl_layout *l, float **to, uint64_t seed);

/*
 * 0 when fragment p of got is what is wanted, up to part of the value (0: bit
 * for bit) and what the tensor's dtype holds; else 1, and e names the first
 * value that is not.
 */
int values_differ(const struct dl_layout *l, uint32_t p, float **got,
	float **want, float part, struct dl_err *e);
/* The same of all fragments. */
int values_differ_anywhere(const struct dl_layout *l, float **got, float **want,
	float part, struct dl_err *e);
/* 0, or 1 and e names the first value that is infinity or NaN. */
int values_broken(const struct dl_layout *l, float **v, struct dl_err *e);

#endif
