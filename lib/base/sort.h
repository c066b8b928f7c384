/*
 * Sorting of indices: a stable merge sort with the caller's context and the
 * caller's memory, which qsort has neither of.
 */
#ifndef DL_BASE_SORT_H
#define DL_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Sorts index[0..n) by compare (negative, zero or positive, as for qsort);
 * equal ones keep their order. temp is room for n / 2.
 */
void dl_sort(uint32_t *index, uint32_t *temp, size_t n,
	int (*compare)(const void *ctx, uint32_t a, uint32_t b),
	const void *ctx);

/* The same of 0..n-1, in new memory that the caller frees. */
uint32_t *dl_sorted(size_t n,
	int (*compare)(const void *ctx, uint32_t a, uint32_t b),
	const void *ctx);

#endif
