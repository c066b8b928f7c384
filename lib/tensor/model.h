/*
 * Models on disk: one safetensors file, a sharded set with
 * model.safetensors.index.json, or any set of records, seen as one list of
 * tensors. Those that are codes with scales are seen, and read, as what they
 * decode to.
 */
#ifndef DL_TENSOR_MODEL_H
#define DL_TENSOR_MODEL_H

#include "base/err.h"
#include "tensor/record.h"
#include "tensor/records.h"

struct dl_model_tensor {
	struct dl_tensor info; /* offset: from the start of its file */
	size_t file, record; /* model->file[file].record[record] */
	const struct dl_encoded *coded; /* private; NULL when it is not */
	const struct dl_decode *decode;
};

struct dl_model {
	struct dl_model_tensor *tensor; /* in byte order of names */
	size_t tensors;
	struct dl_records *file; /* where they are */
	size_t files;
	int headers_only; /* set before files are added: data are not wanted,
			   * and pipes need not be kept */
	struct dl_decode **decode; /* private: the records that are encoded */
	size_t decodes;
};
#define DL_MODEL_INIT {NULL, 0, NULL, 0, 0, NULL, 0}

/*
 * Opens path: a safetensors file, an index file, a folder holding
 * model.safetensors or an index, or "-" (standard input). Reads headers only; a
 * shard that misses a tensor the index names, or a name in two shards, is 65.
 * After a failure m is empty.
 */
int dl_model_open(struct dl_model *m, const char *path, struct dl_err *e);
int dl_model_open_headers(
	struct dl_model *m, const char *path, struct dl_err *e);
void dl_model_close(struct dl_model *m);

/*
 * Or piece by piece, from any number of files of any number of records: m is
 * DL_MODEL_INIT, add what there is (a path as above; or a descriptor, owned
 * from here on, and the name it has in messages), then make the list. Close m
 * also after a failure.
 */
int dl_model_add(struct dl_model *m, const char *path, struct dl_err *e);
int dl_model_add_fd(struct dl_model *m, const char *name, int fd,
	struct dl_err *e);
int dl_model_is_set(const char *path); /* a folder or an index, not a file */
int dl_model_list(struct dl_model *m, struct dl_err *e);

const struct dl_model_tensor *dl_model_find(
	const struct dl_model *m, const char *name, size_t n);

/* n bytes of tensor t from byte at of it into buf: whole elements when it is
 * encoded. */
int dl_model_read(const struct dl_model *m, const struct dl_model_tensor *t,
	uint64_t at, void *buf, size_t n, struct dl_err *e);

/* The whole tensor as f32 (t->info.elements of them); floats and integers. */
int dl_model_read_f32(const struct dl_model *m, const struct dl_model_tensor *t,
	float *out, struct dl_err *e);

#endif
