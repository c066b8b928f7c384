/*
 * Differences of models: records of kind delta, and whether two are equal.
 */
#ifndef DL_TENSOR_DIFF_H
#define DL_TENSOR_DIFF_H

#include "base/file.h"
#include "tensor/layout.h"
#include "tensor/model.h"

/*
 * 0, or 1 (the answer is no) naming the first tensor that is in one model only
 * or has another shape, dtype or value. tolerance < 0 asks for equal bits;
 * else values may differ by tolerance in absolute terms, and dtypes may
 * differ. Also the codes of reading.
 */
int dl_diff_equal(const struct dl_model *a, const struct dl_model *b,
	double tolerance, struct dl_err *e);

/* Metadata: strings of UTF-8, no key twice. */
struct dl_diff_meta {
	const char *key, *value;
};

/*
 * Writes theta minus base to o as one record of F32 tensors, metadata dl.kind
 * "delta" unless meta has another, and what else meta has. With a layout:
 * fragment p's tensors (aliases aside) and dl.layout, dl.fragment; l NULL: all
 * tensors, without those whose bits are equal and that we do no math on. 65
 * names a tensor that cannot be subtracted.
 */
int dl_diff_write(const struct dl_model *base, const struct dl_model *theta,
	const struct dl_layout *l, uint32_t p, const struct dl_diff_meta *meta,
	size_t metas, struct dl_output *o, struct dl_err *e);

#endif
