/*
 * Cutting a model into records of kind params: one a fragment, and one more
 * for what the layout leaves local, so that a model comes back whole. Data
 * keep the model's dtype and bits.
 */
#ifndef DL_TENSOR_SPLIT_H
#define DL_TENSOR_SPLIT_H

#include "base/file.h"
#include "tensor/layout.h"
#include "tensor/model.h"

/* How many records m is cut into: P, or P + 1 when something stays local. */
uint32_t dl_split_records(const struct dl_layout *l, const struct dl_model *m);

/*
 * Writes record i to o: fragment i, or what is local when i is P. The model
 * matches the layout (dl_layout_match). Metadata: dl.kind "params", dl.layout,
 * dl.fragment (a number or "local"), dl.fragments (P), dl.records (P, or
 * P + 1); the local record also carries the model's own metadata.
 */
int dl_split_write(const struct dl_layout *l, const struct dl_model *m,
	uint32_t i, struct dl_output *o, struct dl_err *e);

#endif
