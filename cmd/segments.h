/*
 * A fragment of a layout as merging sees it.
 */
#ifndef CMD_SEGMENTS_H
#define CMD_SEGMENTS_H

#include "merge/merge.h"
#include "tensor/layout.h"

/*
 * The tensors of fragment p, aliases aside, into *out, which the caller frees;
 * returns how many. rda is what the rule of that name becomes: DL_RDA or
 * DL_MEAN (--rule).
 */
size_t segments_cut(const struct dl_layout *l, uint32_t p, enum dl_rule rda,
	struct dl_segment **out);

#endif
