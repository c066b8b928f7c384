/*
 * Writing a model from its fragments in memory: packed f32 arrays, as syncers
 * and learners hold them.
 */
#ifndef DL_TENSOR_PACKED_H
#define DL_TENSOR_PACKED_H

#include "base/file.h"
#include "tensor/layout.h"

enum dl_packed_as {
	DL_PACKED_OWN, /* each tensor in the dtype that the layout gives it */
	DL_PACKED_F32,
};

/*
 * Writes all tensors of the layout as one record; values[p] is fragment p.
 * Tied tensors are copies of what they are tied to.
 */
int dl_packed_write(const struct dl_layout *l, const float *const *values,
	enum dl_packed_as as, struct dl_output *o, struct dl_err *e);

#endif
