/*
 * A fragment in any codec, as the data of its record: how pushes and updates
 * wait in memory, a few bits a value, and are read as f32 block by block.
 */
#ifndef DL_TENSOR_CODED_H
#define DL_TENSOR_CODED_H

#include "base/pool.h"
#include "tensor/layout.h"
#include "tensor/quant.h"

struct dl_coded_tensor {
	enum dl_codec codec;
	uint64_t offset, elements;    /* of the packed array */
	uint64_t codes, scales;	      /* where they begin in the data */
	const struct dl_string *name; /* of the layout */
};

struct dl_coded {
	const unsigned char *data; /* not owned */
	uint64_t bytes;		   /* of data */
	uint64_t elements;	   /* of the packed array */
	uint32_t block;
	struct dl_coded_tensor *tensor; /* in packed order */
	size_t tensors;
};

/*
 * 0, or 65 naming what differs: h holds exactly fragment p's tensors (aliases
 * aside), each in the layout's shape as F32, F16 or BF16, or in the codec that
 * h names. data are the h->data_size bytes that follow it; they may be filled
 * later, before the first read, or be NULL when nothing is read. Borrows from
 * l, not from h. Release c also after a failure.
 */
int dl_coded_open(struct dl_coded *c, const struct dl_layout *l, uint32_t p,
	const struct dl_header *h, const void *data, struct dl_err *e);
void dl_coded_release(struct dl_coded *c);

/* The same of what dl_coded_record and dl_coded_encode make. */
void dl_coded_init(struct dl_coded *c, const struct dl_layout *l, uint32_t p,
	const struct dl_quant *q, const void *data);

/*
 * Elements [offset, offset + n) of the packed array, decoded: what struct
 * dl_contribution.read wants, with the dl_coded as context. Quickest from the
 * beginning of a tensor or a multiple of DL_QUANT_BLOCK_MAX after it. A scale
 * that is not finite gives values that are not.
 */
void dl_coded_read(const void *coded, size_t offset, size_t n, float *out);

/* Where n > 0 of those elements lie: struct dl_contribution.codes. -1 when they
 * do not begin a block, or are not all of one tensor. */
int dl_coded_codes(
	const void *coded, size_t offset, size_t n, struct dl_codes *out);

/* Encodes x into data as elements [offset, offset + n) of the packed array,
 * which are whole blocks of one tensor, or reach its end. */
void dl_coded_put(const struct dl_coded *coded, const struct dl_quant *q,
	size_t offset, size_t n, const float *x, void *data);

/* Decodes the whole packed array (c->elements). */
void dl_coded_decode(
	struct dl_pool *pool, const struct dl_coded *c, float *out);

/* 0, or 65 naming the tensor of l whose scales would take another's name. */
int dl_coded_check(
	const struct dl_layout *l, const struct dl_quant *q, struct dl_err *e);

/*
 * Adds fragment p's tensors, encoded with q, and what says so to w. Tensors of
 * an integer type in the layout stay F32.
 */
void dl_coded_record(const struct dl_layout *l, uint32_t p,
	const struct dl_quant *q, struct dl_writer *w);
/* The bytes of data that follow that header. */
uint64_t dl_coded_bytes(
	const struct dl_layout *l, uint32_t p, const struct dl_quant *q);
/* Encodes the packed array x, all finite, into data, dl_coded_bytes of them,
 * in the order of the canonical record. */
void dl_coded_encode(struct dl_pool *pool, const struct dl_layout *l,
	uint32_t p, const struct dl_quant *q, const float *x, void *data);

#endif
