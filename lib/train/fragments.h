/*
 * The fragments of a model in training, as its layout cuts them: given out and
 * taken in as records.
 */
#ifndef DL_TRAIN_FRAGMENTS_H
#define DL_TRAIN_FRAGMENTS_H

#include "tensor/layout.h"
#include "train/llama.h"
#include "train/mapped.h"

struct dl_fragments {
	const struct dl_llama *m;
	struct dl_layout layout;
	/* private */
	const struct dl_llama_param **param; /* a tensor of the layout */
	struct dl_mapped *sent, *applied;    /* a fragment */
};

/* Reads the layout at path; 65 when m lacks one of its tensors or has another
 * shape for it. */
int dl_fragments_open(struct dl_fragments *f, const struct dl_llama *m,
	const char *path, struct dl_err *e);
void dl_fragments_close(struct dl_fragments *f);

/* Writes fragment p of values to a scratch file. */
int dl_fragments_send(struct dl_fragments *f, uint32_t p, const float *values,
	const char *path, struct dl_err *e);

/* theta = keep theta + add record, for the tensors of fragment p: all of it is
 * known to be there before any is changed. */
int dl_fragments_apply(struct dl_fragments *f, uint32_t p, const char *path,
	float keep, float add, float *values, struct dl_err *e);

/* Calls visit with each stretch of values that is a tensor of fragment p. */
void dl_fragments_visit(const struct dl_fragments *f, uint32_t p,
	void (*visit)(void *ctx, size_t at, size_t n), void *ctx);

#endif
