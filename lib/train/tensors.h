/*
 * Records of f32 tensors that lie about in memory, written without gathering
 * them first.
 */
#ifndef DL_TRAIN_TENSORS_H
#define DL_TRAIN_TENSORS_H

#include "base/pool.h"
#include "tensor/record.h"
#include "train/llama.h"

struct dl_tensors {
	struct dl_writer writer; /* for metadata */
	/* private */
	struct dl_tensors_item {
		const void *data;
		size_t size;
		size_t at; /* in the record */
	} * item;
	size_t n;
	struct dl_buf head; /* of the record, once it has one */
	size_t *order;	    /* of the items in it */
	size_t size;	    /* of the record */
};
#define DL_TENSORS_INIT                                                        \
	{                                                                      \
		DL_WRITER_INIT, NULL, 0, DL_BUF_INIT, NULL, 0                  \
	}

/* Adds p's numbers of the flat array under prefix and p's name. */
void dl_tensors_add(struct dl_tensors *t, const char *prefix,
	const struct dl_llama_param *p, const float *values);
/* Below nothing is added any more. */

/* Bytes of the record. */
size_t dl_tensors_size(struct dl_tensors *t);
/* Copies it to memory of that size. */
void dl_tensors_copy(struct dl_tensors *t, struct dl_pool *pool, void *to);
/* Writes the record; 74 names path. */
int dl_tensors_write(
	struct dl_tensors *t, int fd, const char *path, struct dl_err *e);
void dl_tensors_release(struct dl_tensors *t);

/*
 * The same into a scratch file, which is made or overwritten in place: it is
 * for the process at the other end of a socket, not for the next boot.
 */
int dl_tensors_scratch(
	struct dl_tensors *t, const char *path, struct dl_err *e);
/* ... which is open, at its front. */
int dl_tensors_overwrite(
	struct dl_tensors *t, int fd, const char *path, struct dl_err *e);

#endif
