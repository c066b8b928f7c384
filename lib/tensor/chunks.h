/*
 * Work on many chunks of a tensor by a pool of threads, where a chunk may fail.
 */
#ifndef DL_TENSOR_CHUNKS_H
#define DL_TENSOR_CHUNKS_H

#include <stdint.h>

#include "base/err.h"
#include "base/pool.h"

/* Elements: whole blocks of every codec, and small enough for the stack. */
enum { DL_CHUNK = 4096 };

/* Does elements [at, at + n) of the run that begins at element 0. */
typedef int dl_chunk_fn(void *ctx, uint64_t at, size_t n, struct dl_err *e);

/* Calls f for all chunks of a run of that many elements, from any thread; the
 * failure nearest to the beginning is returned, and ends what comes after. */
int dl_chunks(struct dl_pool *pool, uint64_t elements, dl_chunk_fn *f,
	void *ctx, struct dl_err *e);

#endif
