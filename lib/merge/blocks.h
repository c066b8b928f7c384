/*
 * Segments cut into the fixed blocks that all work is shared out by.
 */
#ifndef DL_MERGE_BLOCKS_H
#define DL_MERGE_BLOCKS_H

#include "merge/merge.h"

struct dl_block {
	size_t segment;	  /* index */
	size_t offset, n; /* elements of the fragment; n <= DL_MERGE_BLOCK */
};

/* The blocks of all segments but aliases, in order, into *blocks, which the
 * caller frees; returns how many. */
size_t dl_blocks_cut(const struct dl_segment *segments, size_t nsegments,
	struct dl_block **blocks);

#endif
