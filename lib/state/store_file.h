/*
 * The files of a store that hold tensors: one fragment each, as one record
 * whose data are the packed array.
 */
#ifndef DL_STATE_STORE_FILE_H
#define DL_STATE_STORE_FILE_H

#include <stdatomic.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/output.h"
#include "tensor/layout.h"

/* Writes a record to be at path, a header and n bytes of data, for the caller
 * to commit. 73 or 74. */
int dl_store_file_write(struct dl_output *o, const char *path,
	const struct dl_buf *head, const float *data, size_t n,
	struct dl_err *e);

/* Reads fragment p, whose file has that BLAKE2b; "" becomes the one that it
 * has. 66 when it is gone, 65 when it is not fragment p of l or its hash is
 * another. */
int dl_store_file_read(const char *path, const struct dl_layout *l, uint32_t p,
	float *data, char hash[DL_HASH_HEX], struct dl_err *e);

/* Its BLAKE2b: 66 when it is gone, 75 once *stop is set. */
int dl_store_file_hash(const char *path, const atomic_int *stop,
	char hash[DL_HASH_HEX], struct dl_err *e);

#endif
