#include "merge/blocks.h"

#include "base/mem.h"

static size_t blocks_in(const struct dl_segment *s)
{
	if (s->rule == DL_ALIAS)
		return 0;
	return s->n / DL_MERGE_BLOCK + (s->n % DL_MERGE_BLOCK != 0);
}

size_t dl_blocks_cut(const struct dl_segment *segments, size_t nsegments,
	struct dl_block **blocks)
{
	size_t count = 0, at = 0;

	for (size_t s = 0; s < nsegments; s++)
		count += blocks_in(&segments[s]);
	*blocks = dl_alloc_array(count, sizeof **blocks);
	for (size_t s = 0; s < nsegments; s++)
		for (size_t i = 0; i < blocks_in(&segments[s]); i++) {
			size_t done = i * DL_MERGE_BLOCK;
			size_t left = segments[s].n - done;

			(*blocks)[at++] = (struct dl_block){s,
				segments[s].offset + done,
				left < DL_MERGE_BLOCK ? left : DL_MERGE_BLOCK};
		}
	return count;
}
