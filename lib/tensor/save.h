/*
 * Saving a model: as one file, or as a sharded set with an index
 * (model-00001-of-00003.safetensors, model.safetensors.index.json).
 */
#ifndef DL_TENSOR_SAVE_H
#define DL_TENSOR_SAVE_H

#include "tensor/emit.h"

struct dl_save {
	const char *path;    /* a file, "-", or the folder of a set */
	uint64_t shard_size; /* bytes of tensors in a shard; 0: one file */
	int zstd;	     /* level of a file's compression; 0: none */
};

/*
 * Could it be saved? For those who work long before they save. 73 when path
 * cannot be made, or is a folder that holds a model already: shards of two
 * models must not mix.
 */
int dl_save_check(const struct dl_save *s, struct dl_err *e);

/*
 * Ends w and writes the model that it describes, as dl_emit has it; size and
 * fill are by handle. A set has its tensors in byte order of names, each shard
 * as many as fit in and at least one; what fits into one shard becomes
 * model.safetensors without an index. Nothing is left behind after a failure,
 * not even the folder when it was not there before. w is released.
 */
int dl_save(const struct dl_save *s, struct dl_writer *w, const uint64_t *size,
	dl_emit_fn *fill, void *ctx, struct dl_err *e);

#endif
