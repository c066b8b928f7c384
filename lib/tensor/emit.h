/*
 * Writing a record whose data are made block by block, so that memory is one
 * block and not a model.
 */
#ifndef DL_TENSOR_EMIT_H
#define DL_TENSOR_EMIT_H

#include "base/err.h"
#include "base/file.h"
#include "tensor/model.h"
#include "tensor/record.h"

enum { DL_EMIT_BLOCK = 1 << 20 }; /* whole elements of every dtype */

/*
 * Puts n bytes of the tensor of that handle, from byte at of it, into block; at
 * is a multiple of DL_EMIT_BLOCK, but for dl_emit_from. 0 or an error's code.
 */
typedef int dl_emit_fn(void *ctx, size_t handle, uint64_t at, void *block,
	size_t n, struct dl_err *e);

/*
 * Ends the header of w and writes the record to o. size holds the bytes of
 * each tensor by handle. w is released.
 */
int dl_emit(struct dl_output *o, struct dl_writer *w, const uint64_t *size,
	dl_emit_fn *fill, void *ctx, struct dl_err *e);

/*
 * Where the data of that tensor are as they are to be written: from byte *at of
 * a file, which it returns; -1 when they are to be made.
 */
typedef int dl_emit_whence(void *ctx, size_t handle, uint64_t *at);

/* The same; what lies in a file is copied, and if that cannot be, or only of
 * the beginning, fill is asked for the rest, from any byte on. */
int dl_emit_from(struct dl_output *o, struct dl_writer *w, const uint64_t *size,
	dl_emit_fn *fill, dl_emit_whence *whence, void *ctx, struct dl_err *e);

/* The largest block that fill will be asked for: a record may be much smaller
 * than a block, and there may be many of them. */
size_t dl_emit_block(const uint64_t *size, size_t n);

/* Copies metadata without "dl." in front: what the model came with. Keys that
 * hold NUL are left out. Returns how many were copied. */
size_t dl_emit_meta(struct dl_writer *w, const struct dl_header *h);

#endif
