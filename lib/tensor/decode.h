/*
 * Reading the tensors of an encoded record of a file, and writing the record
 * that they were.
 */
#ifndef DL_TENSOR_DECODE_H
#define DL_TENSOR_DECODE_H

#include "base/output.h"
#include "base/pool.h"
#include "tensor/encoding.h"
#include "tensor/records.h"

struct dl_decode {
	const struct dl_records *in;
	const struct dl_records_entry *record;
	struct dl_encoding how;
};

/* 65 names what does not fit. Close d also after a failure. Borrows from in. */
int dl_decode_open(struct dl_decode *d, const struct dl_records *in,
	size_t record, struct dl_err *e);
void dl_decode_close(struct dl_decode *d);

/* Reads all scales: 65 names the first that no encoder wrote, since it is
 * negative or makes values that are not finite. */
int dl_decode_check(const struct dl_decode *d, struct dl_err *e);

/* n values of a coded tensor from value at on, a multiple of
 * DL_QUANT_BLOCK_MAX. */
int dl_decode_read(const struct dl_decode *d, const struct dl_encoded *t,
	uint64_t at, size_t n, float *out, struct dl_err *e);

/* n values in the dtype that they had; what would round to infinity is as large
 * as it can be. x is overwritten. */
void dl_decode_restore(void *out, float *x, enum dl_dtype t, size_t n);

/* Writes the record with its tensors decoded; one that is not encoded keeps
 * its bytes. */
int dl_decode_write(const struct dl_decode *d, struct dl_pool *pool,
	struct dl_output *o, struct dl_err *e);

/* Metadata of h without what says how its tensors are encoded. */
void dl_decode_meta(struct dl_writer *w, const struct dl_header *h);

/* Writes the bytes of a record as they are. */
int dl_decode_copy(const struct dl_records *in, size_t record,
	struct dl_output *o, struct dl_err *e);

#endif
