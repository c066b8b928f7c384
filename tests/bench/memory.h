/*
 * What memory allows: the same bytes, only read, or copied by memcpy.
 */
#ifndef TESTS_BENCH_MEMORY_H
#define TESTS_BENCH_MEMORY_H

#include <stddef.h>

#include "base/pool.h"

/* Reads n bytes at x, a multiple of MEMORY_PART. */
void memory_read(struct dl_pool *pool, const void *x, size_t n);
/* Copies them. */
void memory_copy(struct dl_pool *pool, void *to, const void *from, size_t n);

enum { MEMORY_PART = 1 << 20 };

#endif
