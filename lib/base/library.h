/*
 * Libraries that are loaded once there is work for them, since binding a large
 * one takes longer than all else of a program's start.
 */
#ifndef DL_BASE_LIBRARY_H
#define DL_BASE_LIBRARY_H

#include <stddef.h>

#include "base/err.h"

/* Finds n functions by name and puts pointers to them, in order, into table: n
 * pointers to functions. 69 when the library, or one of them, is not there. */
int dl_library_load(const char *library, const char *const *name, size_t n,
	void *table, struct dl_err *e);

#endif
