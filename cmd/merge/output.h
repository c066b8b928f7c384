/*
 * What a merge writes: values as the base has them, updates, momentum.
 */
#ifndef CMD_MERGE_OUTPUT_H
#define CMD_MERGE_OUTPUT_H

#include "base/output.h"
#include "cmd/merge/base.h"

/*
 * Writes fragment p of the base, or the whole base when it is not cut: theta,
 * in the base's dtypes, under the next version; or, theta NULL, what the base
 * holds.
 */
int output_values(const struct base *b, uint32_t p, const float *theta,
	struct dl_output *o, struct dl_err *e);
/* What is in no fragment. */
int output_local(const struct base *b, struct dl_output *o, struct dl_err *e);

/* Fragment p's packed array as a record of F32: kind "momentum" under the next
 * version, or "delta" on the present one. */
int output_packed(const struct base *b, uint32_t p, const char *kind,
	const float *data, struct dl_output *o, struct dl_err *e);

#endif
