/*
 * The values of a tensor that is encoded, chunk by chunk. Private to encoding.
 */
#ifndef DL_TENSOR_ENCODE_VALUES_H
#define DL_TENSOR_ENCODE_VALUES_H

#include "tensor/chunks.h"
#include "tensor/encode.h"

static inline const struct dl_header *encode_header(const struct dl_encode *n)
{
	return &n->in->record[n->record].header;
}

static inline const struct dl_header *encode_owed(const struct dl_encode *n)
{
	return &n->owed->record[n->owed_record].header;
}

struct encode_source {
	const struct dl_encode *n;
	const struct dl_tensor *t;
	const struct dl_tensor *owed; /* NULL: without */
	uint64_t key;
};

void encode_source_init(struct encode_source *s, const struct dl_encode *n,
	const struct dl_tensor *t);

/* Values [at, at + n) as they are to be encoded: what the tensor holds and what
 * is owed. n is at most DL_CHUNK. */
int encode_read(const struct encode_source *s, uint64_t at, size_t n,
	float *out, struct dl_err *e);

/* A chunk: its values, their codes and scales, and what decoding makes of these
 * in the tensor's own dtype. */
struct encode_chunk {
	float value[DL_CHUNK], restored[DL_CHUNK];
	unsigned char codes[DL_CHUNK * sizeof(float)];
	unsigned char scales[2 * DL_CHUNK / DL_QUANT_BLOCK_MIN];
};

/* Reads and encodes; then restores. */
int encode_do(const struct encode_source *s, uint64_t at, size_t n,
	struct encode_chunk *c, struct dl_err *e);
void encode_restore(
	const struct encode_source *s, size_t n, struct encode_chunk *c);

#endif
