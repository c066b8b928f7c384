/*
 * Writing a model from its fragments in memory: packed f32 arrays, as syncers
 * and learners hold them.
 */
#ifndef DL_TENSOR_PACKED_H
#define DL_TENSOR_PACKED_H

#include "tensor/layout.h"
#include "tensor/save.h"

enum dl_packed_as {
	DL_PACKED_OWN, /* each tensor in the dtype that the layout gives it */
	DL_PACKED_F32,
};

/*
 * Saves all tensors of the layout as a model; values[p] is fragment p.
 * Tied tensors are copies of what they are tied to.
 */
int dl_packed_write(const struct dl_layout *l, const float *const *values,
	enum dl_packed_as as, const struct dl_save *s, struct dl_err *e);

#endif
