/*
 * What a record says of how its tensors are encoded (dl-fragment(5), "Encoded
 * tensors"): dl.codec and dl.block for all, dl.shape.NAME and dl.dtype.NAME for
 * each.
 */
#ifndef DL_TENSOR_ENCODING_H
#define DL_TENSOR_ENCODING_H

#include "base/err.h"
#include "tensor/quant.h"
#include "tensor/record.h"

/* A tensor of a record: what it is, and where it is stored. */
struct dl_encoded {
	const struct dl_tensor *stored; /* its codes, or itself; NULL: these
					 * are the scales of another */
	const struct dl_tensor *scales; /* NULL unless scaled */
	int coded;			/* 0: stored as it is, in any dtype */
	enum dl_codec codec;		/* when coded */
	enum dl_dtype dtype;		/* what decoding gives */
	unsigned rank;
	const uint64_t *shape;
	uint64_t elements;
};

struct dl_encoding {
	int coded; /* the record has dl.codec */
	enum dl_codec codec;
	uint32_t block;		   /* of a scaled codec */
	struct dl_encoded *tensor; /* as many as, and in the order of, h's */
	size_t tensors;
	uint64_t *shapes; /* private */
};

/*
 * Reads what h says; 65 names what is unknown, missing or does not fit. n
 * borrows from h; release it, also after a failure.
 */
int dl_encoding_read(
	struct dl_encoding *n, const struct dl_header *h, struct dl_err *e);
void dl_encoding_release(struct dl_encoding *n);

/* Says that what follows is encoded with q. */
void dl_encoding_put(struct dl_writer *w, const struct dl_quant *q);

/*
 * Adds a tensor of that dtype and shape, to be encoded with q: one handle, and
 * when the codec is scaled the next one for its scales.
 */
size_t dl_encoding_tensor(struct dl_writer *w, const struct dl_quant *q,
	const struct dl_string *name, enum dl_dtype dtype, unsigned rank,
	const uint64_t *shape);

/* The name of a tensor's scales; the caller frees it. */
struct dl_string dl_encoding_scales(const struct dl_string *name);

#endif
