/*
 * Writing a record of a file encoded, block by block, so that memory is a few
 * blocks: its data are read once to be checked, once for the scales, which come
 * first in the record, and once for the codes.
 */
#ifndef DL_TENSOR_ENCODE_H
#define DL_TENSOR_ENCODE_H

#include "base/output.h"
#include "base/pool.h"
#include "tensor/quant.h"
#include "tensor/records.h"

struct dl_encode {
	const struct dl_quant *q;
	struct dl_pool *pool;
	const struct dl_records *in;
	size_t record;
	/* Error feedback: a record with what earlier encodings lost of each
	 * float tensor, in F32; it is added first. owed NULL: without. */
	const struct dl_records *owed;
	size_t owed_record;
};

/*
 * 65 names tensor and fact when the record is already encoded, a name is taken
 * by another's scales, a value is not finite or the codec cannot hold it, or
 * owed does not have the same tensors.
 */
int dl_encode_check(const struct dl_encode *n, struct dl_err *e);

/* What became of a tensor. */
struct dl_encode_report {
	int encoded;	  /* 0: passed through */
	uint64_t bytes;	  /* codes and scales */
	uint64_t zstd;	  /* what zstd makes of them */
	double lost, all; /* sums of squares: of the error, of the values */
};

/* Writes the record, after dl_encode_check. report, unless NULL, has an entry
 * for each tensor of its header; that costs compressing it. */
int dl_encode_write(const struct dl_encode *n, struct dl_output *o,
	struct dl_encode_report *report, struct dl_err *e);

#endif
