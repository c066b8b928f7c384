/*
 * The files of a store that hold tensors: one fragment each, as one record
 * whose data are the packed array.
 */
#ifndef DL_STATE_STORE_FILE_H
#define DL_STATE_STORE_FILE_H

#include "base/err.h"
#include "base/hash.h"
#include "tensor/layout.h"

/*
 * Writes fragment p durably at path, beside the metadata already in w, which is
 * released. hash gets the BLAKE2b of the whole file. 73 or 74.
 */
int dl_store_file_write(const char *path, struct dl_writer *w,
	const struct dl_layout *l, uint32_t p, const float *data,
	char hash[DL_HASH_HEX], struct dl_err *e);

/* Reads it back: 66 when it is gone, 65 when it is not fragment p of l or its
 * hash is another. */
int dl_store_file_read(const char *path, const struct dl_layout *l, uint32_t p,
	float *data, const char *hash, struct dl_err *e);

#endif
