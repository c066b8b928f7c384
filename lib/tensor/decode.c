#include "tensor/decode.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/chunks.h"
#include "tensor/emit.h"
#include "tensor/quant_bits.h"

int dl_decode_open(struct dl_decode *d, const struct dl_records *in,
	size_t record, struct dl_err *e)
{
	d->in = in;
	d->record = &in->record[record];
	return dl_encoding_read(&d->how, &d->record->header, e);
}

void dl_decode_close(struct dl_decode *d)
{
	dl_encoding_release(&d->how);
}

static int read_bytes(const struct dl_decode *d, const struct dl_tensor *t,
	uint64_t at, void *buf, size_t n, struct dl_err *e)
{
	return dl_records_read(
		d->in, d->record->at + t->offset + at, buf, n, e);
}

static int check_scales(const struct dl_decode *d, const struct dl_tensor *t,
	enum dl_codec c, struct dl_err *e)
{
	unsigned char raw[2 * DL_CHUNK];
	char name[80];

	for (uint64_t at = 0; at < t->elements; at += DL_CHUNK) {
		uint64_t left = t->elements - at;
		size_t n = left < DL_CHUNK ? (size_t)left : DL_CHUNK;
		int rc = read_bytes(d, t, 2 * at, raw, 2 * n, e);

		for (size_t i = 0; !rc && i < n; i++) {
			uint16_t scale = dl_le16(raw + 2 * i);

			if (scale == quant_limit(c, scale))
				continue;
			return dl_fail(e, DL_DATA,
				"tensor \"%s\": element %llu is %g, which is "
				"no scale",
				dl_scrub(name, sizeof name, t->name.s,
					t->name.n),
				(unsigned long long)(at + i),
				(double)quant_scale(scale));
		}
		if (rc)
			return rc;
	}
	return 0;
}

int dl_decode_check(const struct dl_decode *d, struct dl_err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < d->how.tensors; i++) {
		const struct dl_encoded *t = &d->how.tensor[i];

		if (t->stored && t->scales)
			rc = check_scales(d, t->scales, t->codec, e);
	}
	return rc;
}

static int read_chunk(const struct dl_decode *d, const struct dl_encoded *t,
	uint64_t at, size_t n, float *out, struct dl_err *e)
{
	unsigned char codes[DL_CHUNK * sizeof(float)];
	unsigned char scales[2 * DL_CHUNK / DL_QUANT_BLOCK_MIN];
	uint32_t block = d->how.block;
	int rc = read_bytes(d, t->stored, dl_codec_bytes(t->codec, at), codes,
		dl_codec_bytes(t->codec, n), e);

	if (!rc && t->scales)
		rc = read_bytes(d, t->scales, at / block * 2, scales,
			2 * dl_codec_scales(t->codec, block, n), e);
	if (!rc)
		dl_quant_decode(t->codec, block, codes, scales, n, out);
	return rc;
}

int dl_decode_read(const struct dl_decode *d, const struct dl_encoded *t,
	uint64_t at, size_t n, float *out, struct dl_err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i += DL_CHUNK)
		rc = read_chunk(d, t, at + i,
			n - i < DL_CHUNK ? n - i : DL_CHUNK, out + i, e);
	return rc;
}

void dl_decode_restore(void *out, float *x, enum dl_dtype t, size_t n)
{
	float most = t == DL_F16 ? 65504 : t == DL_BF16 ? 0x1.fep127f : FLT_MAX;

	for (size_t i = 0; i < n; i++)
		x[i] = x[i] > most ? most : x[i] < -most ? -most : x[i];
	dl_from_f32(out, x, t, n);
}

/* The record that is made. */
struct making {
	const struct dl_decode *d;
	struct dl_pool *pool;
	const struct dl_encoded **tensor; /* by handle */
};

/* A piece of a tensor that is made. */
struct piece {
	const struct making *k;
	const struct dl_encoded *t;
	uint64_t at; /* element */
	unsigned char *out;
};

static int restore_chunk(void *ctx, uint64_t at, size_t n, struct dl_err *e)
{
	const struct piece *p = ctx;
	unsigned width = dl_dtype_bits(p->t->dtype) / 8;
	float x[DL_CHUNK];
	int rc = read_chunk(p->k->d, p->t, p->at + at, n, x, e);

	if (!rc)
		dl_decode_restore(p->out + at * width, x, p->t->dtype, n);
	return rc;
}

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct making *k = ctx;
	const struct dl_encoded *t = k->tensor[handle];
	unsigned width = dl_dtype_bits(t->dtype) / 8;
	struct piece p = {k, t, 0, block};

	if (!t->coded)
		return read_bytes(k->d, t->stored, at, block, n, e);
	p.at = at / width;
	return dl_chunks(k->pool, n / width, restore_chunk, &p, e);
}

static int is_how(const struct dl_string *key)
{
	static const char *const how[] = {
		"dl.codec", "dl.block", "dl.shape.", "dl.dtype."};

	for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
		size_t n = strlen(how[i]);

		if (how[i][n - 1] == '.' ? key->n >= n : key->n == n)
			if (!memcmp(key->s, how[i], n))
				return 1;
	}
	return 0;
}

void dl_decode_meta(struct dl_writer *w, const struct dl_header *h)
{
	for (size_t i = 0; i < h->metas; i++) {
		const struct dl_string *m = h->meta[i];

		if (!is_how(&m[0]))
			dl_writer_meta_pair(w, m[0].s, m[0].n, m[1].s, m[1].n);
	}
}

int dl_decode_copy(const struct dl_records *in, size_t record,
	struct dl_output *o, struct dl_err *e)
{
	const struct dl_records_entry *r = &in->record[record];
	uint64_t from = r->at - r->header.header_size - 8;
	uint64_t end = r->at + r->header.data_size;
	unsigned char *block = dl_alloc(DL_EMIT_BLOCK);
	int rc = 0;

	for (; !rc && from < end; from += DL_EMIT_BLOCK) {
		size_t n = end - from < DL_EMIT_BLOCK ? (size_t)(end - from)
						      : DL_EMIT_BLOCK;

		rc = dl_records_read(in, from, block, n, e);
		if (!rc)
			rc = dl_output_write(o, block, n, e);
	}
	free(block);
	return rc;
}

int dl_decode_write(const struct dl_decode *d, struct dl_pool *pool,
	struct dl_output *o, struct dl_err *e)
{
	struct dl_writer w = DL_WRITER_INIT;
	size_t n = d->how.tensors;
	struct making k = {d, pool, dl_alloc_array(n, sizeof *k.tensor)};
	uint64_t *size = dl_alloc_array(n, sizeof *size);
	int rc;

	dl_decode_meta(&w, &d->record->header);
	for (size_t i = 0; i < n; i++) {
		const struct dl_encoded *t = &d->how.tensor[i];
		size_t handle;

		if (!t->stored)
			continue;
		handle = dl_writer_tensor(&w, t->stored->name.s,
			t->stored->name.n, t->dtype, t->rank, t->shape);
		k.tensor[handle] = t;
		size[handle] = t->elements * dl_dtype_bits(t->dtype) / 8;
	}
	if (d->how.coded) {
		rc = dl_emit(o, &w, size, fill, &k, e);
	} else {
		rc = dl_decode_copy(
			d->in, (size_t)(d->record - d->in->record), o, e);
		dl_writer_release(&w);
	}
	free(k.tensor);
	free(size);
	return rc;
}
