/*
 * How small zstd would make what passes by.
 */
#ifndef DL_TENSOR_ZSTD_SIZE_H
#define DL_TENSOR_ZSTD_SIZE_H

#include <stddef.h>
#include <stdint.h>

struct dl_zstd_size {
	struct ZSTD_CCtx_s *ctx; /* private; NULL before the first bytes */
};

/* Bytes that come out for n more in; last ends a frame. */
uint64_t dl_zstd_size_add(
	struct dl_zstd_size *z, const void *p, size_t n, int last);
void dl_zstd_size_release(struct dl_zstd_size *z);

#endif
