/*
 * The index of a sharded model (model.safetensors.index.json): which file
 * holds which tensor.
 */
#ifndef DL_TENSOR_SHARDS_H
#define DL_TENSOR_SHARDS_H

#include "base/err.h"
#include "base/mem.h"
#include "tensor/record.h"

/* Where a folder has its model: in one file, or what an index names. */
#define DL_SHARDS_SINGLE "model.safetensors"
#define DL_SHARDS_INDEX "model.safetensors.index.json"

struct dl_shards_entry {
	struct dl_string tensor;
	struct dl_string shard;
	unsigned file; /* of dl_shards.file */
};

struct dl_shards {
	struct dl_shards_entry *entry; /* by shard, then by tensor */
	size_t entries;
	struct dl_string *file; /* the shards' names, in byte order */
	size_t files;
	struct dl_buf text; /* private: holds all strings */
};

/*
 * Parses or reads an index; 65 when it is not one, names a tensor twice or
 * names a file outside its own folder. Release it also after a failure.
 */
int dl_shards_parse(
	struct dl_shards *s, const void *text, size_t n, struct dl_err *e);
int dl_shards_read(struct dl_shards *s, const char *path, struct dl_err *e);
void dl_shards_release(struct dl_shards *s);

#endif
