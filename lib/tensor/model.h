/*
 * Models on disk: one safetensors file, or a sharded set with
 * model.safetensors.index.json, seen as one list of tensors.
 */
#ifndef DL_TENSOR_MODEL_H
#define DL_TENSOR_MODEL_H

#include "base/err.h"
#include "tensor/record.h"
#include "tensor/records.h"

struct dl_model_tensor {
	struct dl_tensor info; /* offset counts from the start of its file */
	unsigned file;
};

struct dl_model {
	struct dl_model_tensor *tensor; /* in byte order of names */
	size_t tensors;
	/* The metadata of the (first) file, as in struct dl_header. */
	struct dl_string (*meta)[2];
	size_t metas;
	/* private */
	struct dl_records *file; /* of one record each */
	size_t files;
};

/*
 * Opens path: a safetensors file, an index file, a folder holding
 * model.safetensors or an index, or "-" (standard input). Reads headers only; a
 * shard that misses a tensor the index names, or a name in two shards, is 65.
 * After a failure m is empty.
 */
int dl_model_open(struct dl_model *m, const char *path, struct dl_err *e);
void dl_model_close(struct dl_model *m);

const struct dl_model_tensor *dl_model_find(
	const struct dl_model *m, const char *name, size_t n);

/* n bytes of tensor t from byte at of it into buf. */
int dl_model_read(const struct dl_model *m, const struct dl_model_tensor *t,
	uint64_t at, void *buf, size_t n, struct dl_err *e);

/* The whole tensor as f32 (t->info.elements of them); floats and integers. */
int dl_model_read_f32(const struct dl_model *m, const struct dl_model_tensor *t,
	float *out, struct dl_err *e);

#endif
