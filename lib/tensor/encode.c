#include "tensor/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/decode.h"
#include "tensor/emit.h"
#include "tensor/encode_values.h"
#include "tensor/zstd_size.h"

/* What a handle of the record that is made stands for. */
enum what { STORED, CODES, SCALES };

struct part {
	enum what what;
	const struct dl_tensor *t;
};

struct making {
	const struct dl_encode *n;
	struct dl_writer w;
	struct part *part; /* by handle */
	uint64_t *size;
	struct dl_encode_report *report; /* or NULL */
	struct dl_zstd_size zstd;
};

/* A piece of a tensor that is made. */
struct piece {
	struct encode_source s;
	enum what what;
	uint64_t at; /* element */
	unsigned char *out;
	double *lost, *all; /* by chunk; or NULL */
};

static void measure(
	const struct piece *p, uint64_t at, size_t n, struct encode_chunk *c)
{
	double lost = 0, all = 0;

	encode_restore(&p->s, n, c);
	for (size_t i = 0; i < n; i++) {
		double x = c->value[i], off = (double)c->restored[i] - x;

		lost += off * off;
		all += x * x;
	}
	p->lost[at / DL_CHUNK] = lost;
	p->all[at / DL_CHUNK] = all;
}

static int make_chunk(void *ctx, uint64_t at, size_t n, struct dl_err *e)
{
	const struct piece *p = ctx;
	const struct dl_quant *q = p->s.n->q;
	struct encode_chunk c;
	int rc = encode_do(&p->s, p->at + at, n, &c, e);

	if (rc)
		return rc;
	if (p->what == CODES)
		memcpy(p->out + dl_codec_bytes(q->codec, at), c.codes,
			dl_codec_bytes(q->codec, n));
	else
		memcpy(p->out + at / q->block * 2, c.scales,
			2 * dl_codec_scales(q->codec, q->block, n));
	if (p->lost)
		measure(p, at, n, &c);
	return 0;
}

/* How many elements n bytes from byte at of a part stand for; *first is the
 * first of them. */
static uint64_t span(const struct dl_quant *q, const struct part *part,
	uint64_t at, size_t n, uint64_t *first)
{
	uint64_t bits = 8 * dl_codec_bytes(q->codec, q->block) / q->block;
	uint64_t count;

	if (part->what == SCALES) {
		*first = at / 2 * q->block;
		count = (uint64_t)n / 2 * q->block;
	} else {
		*first = at * 8 / bits;
		count = (uint64_t)n * 8 / bits;
	}
	if (count > part->t->elements - *first)
		count = part->t->elements - *first;
	return count;
}

static int make(struct making *k, const struct part *part, uint64_t at,
	unsigned char *block, size_t n, struct dl_err *e)
{
	struct piece p = {.what = part->what, .out = block};
	uint64_t count = span(k->n->q, part, at, n, &p.at);
	size_t chunks = count / DL_CHUNK + 1;
	struct dl_encode_report *r =
		k->report ? &k->report[part->t - encode_header(k->n)->tensor]
			  : NULL;
	int rc;

	encode_source_init(&p.s, k->n, part->t);
	if (r && part->what == CODES) {
		p.lost = dl_alloc_array(2 * chunks, sizeof *p.lost);
		p.all = p.lost + chunks;
	}
	rc = dl_chunks(k->n->pool, count, make_chunk, &p, e);
	for (size_t i = 0; p.lost && i < chunks; i++) {
		r->lost += p.lost[i];
		r->all += p.all[i];
	}
	free(p.lost);
	if (r)
		r->zstd += dl_zstd_size_add(
			&k->zstd, block, n, at + n == k->size[part - k->part]);
	return rc;
}

static int fill(void *ctx, size_t handle, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	struct making *k = ctx;
	const struct part *part = &k->part[handle];
	const struct dl_encode *c = k->n;

	if (part->what == STORED)
		return dl_records_read(c->in,
			c->in->record[c->record].at + part->t->offset + at,
			block, n, e);
	return make(k, part, at, block, n, e);
}

static void take_stored(struct making *k, const struct dl_tensor *t)
{
	size_t handle = dl_writer_tensor(
		&k->w, t->name.s, t->name.n, t->dtype, t->rank, t->shape);

	k->part[handle] = (struct part){STORED, t};
	k->size[handle] = t->size;
}

static void take_encoded(struct making *k, const struct dl_tensor *t)
{
	const struct dl_quant *q = k->n->q;
	size_t handle = dl_encoding_tensor(
		&k->w, q, &t->name, t->dtype, t->rank, t->shape);
	uint64_t scales = 2 * dl_codec_scales(q->codec, q->block, t->elements);

	k->part[handle] = (struct part){CODES, t};
	k->size[handle] = dl_codec_bytes(q->codec, t->elements);
	if (dl_codec_is_scaled(q->codec)) {
		k->part[handle + 1] = (struct part){SCALES, t};
		k->size[handle + 1] = scales;
	}
	if (k->report)
		k->report[t - encode_header(k->n)->tensor] =
			(struct dl_encode_report){.encoded = 1,
				.bytes = k->size[handle] + scales};
}

int dl_encode_write(const struct dl_encode *n, struct dl_output *o,
	struct dl_encode_report *report, struct dl_err *e)
{
	const struct dl_header *h = encode_header(n);
	struct making k = {.n = n,
		.w = DL_WRITER_INIT,
		.part = dl_alloc_array(2 * h->tensors, sizeof *k.part),
		.size = dl_alloc_array(2 * h->tensors, sizeof *k.size),
		.report = report};
	int rc;

	dl_decode_meta(&k.w, h);
	dl_encoding_put(&k.w, n->q);
	for (size_t i = 0; i < h->tensors; i++)
		if (dl_dtype_is_float(h->tensor[i].dtype))
			take_encoded(&k, &h->tensor[i]);
		else
			take_stored(&k, &h->tensor[i]);
	rc = dl_emit(o, &k.w, k.size, fill, &k, e);
	dl_zstd_size_release(&k.zstd);
	free(k.part);
	free(k.size);
	return rc;
}
