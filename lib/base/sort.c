#include "base/sort.h"

#include <string.h>

typedef int compare_fn(const void *ctx, uint32_t a, uint32_t b);

/* Merges the sorted from[0..mid) and from[mid..n) into to. */
static void merge(uint32_t *to, const uint32_t *from, size_t mid, size_t n,
	compare_fn *compare, const void *ctx)
{
	size_t a = 0, b = mid;

	if (mid >= n || compare(ctx, from[mid - 1], from[mid]) <= 0) {
		memcpy(to, from, n * sizeof *to);
		return;
	}
	while (a < mid && b < n)
		if (compare(ctx, from[a], from[b]) <= 0)
			*to++ = from[a++];
		else
			*to++ = from[b++];
	memcpy(to, from + a, (mid - a) * sizeof *to);
	memcpy(to + (mid - a), from + b, (n - b) * sizeof *to);
}

void dl_sort_index(uint32_t *index, uint32_t *temp, size_t n,
	compare_fn *compare, const void *ctx)
{
	uint32_t *from = index, *to = temp, *swap;

	for (size_t i = 0; i < n; i++)
		index[i] = (uint32_t)i;
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t i = 0; i < n; i += 2 * width)
			merge(to + i, from + i, width,
				n - i < 2 * width ? n - i : 2 * width, compare,
				ctx);
		swap = from;
		from = to;
		to = swap;
	}
	if (from != index)
		memcpy(index, from, n * sizeof *index);
}
