#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef int compare_fn(const void *ctx, uint32_t a, uint32_t b);

void dl_sort(uint32_t *index, uint32_t *temp, size_t n, compare_fn *compare,
	const void *ctx)
{
	size_t mid = n / 2, a = 0, b = mid;
	uint32_t *to = index;

	if (n < 2)
		return;
	dl_sort(index, temp, mid, compare, ctx);
	dl_sort(index + mid, temp, n - mid, compare, ctx);
	if (compare(ctx, index[mid - 1], index[mid]) <= 0)
		return;
	memcpy(temp, index, mid * sizeof *temp);
	while (a < mid && b < n)
		if (compare(ctx, temp[a], index[b]) <= 0)
			*to++ = temp[a++];
		else
			*to++ = index[b++];
	memcpy(to, temp + a, (mid - a) * sizeof *to);
}

uint32_t *dl_sorted(size_t n, compare_fn *compare, const void *ctx)
{
	uint32_t *index = dl_alloc_array(n, sizeof *index);
	uint32_t *temp = dl_alloc_array(n / 2, sizeof *temp);

	for (size_t i = 0; i < n; i++)
		index[i] = (uint32_t)i;
	dl_sort(index, temp, n, compare, ctx);
	free(temp);
	return index;
}
