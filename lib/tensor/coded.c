#include "tensor/coded.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/encoding.h"

enum { CHUNK = 1 << 16 }; /* elements of a tensor that one thread takes */

static int bad_tensor(
	struct dl_err *e, const struct dl_string *name, const char *fact)
{
	char text[80];

	return dl_fail(e, DL_DATA, "tensor \"%s\" %s",
		dl_scrub(text, sizeof text, name->s, name->n), fact);
}

static int same_shape(
	const struct dl_layout_tensor *t, const struct dl_encoded *n)
{
	return t->rank == n->rank &&
	       !memcmp(t->shape, n->shape, t->rank * sizeof *t->shape);
}

static int plain_codec(enum dl_dtype t, enum dl_codec *out)
{
	*out = t == DL_F32    ? DL_CODEC_F32
	       : t == DL_F16  ? DL_CODEC_F16
	       : t == DL_BF16 ? DL_CODEC_BF16
			      : DL_CODECS;
	return *out != DL_CODECS;
}

static int place(struct dl_coded *c, const struct dl_layout_tensor *t,
	const struct dl_encoding *n, const struct dl_header *h,
	struct dl_err *e)
{
	const struct dl_tensor *stored =
		dl_header_find(h, t->name.s, t->name.n);
	const struct dl_encoded *found =
		stored ? &n->tensor[stored - h->tensor] : NULL;
	struct dl_coded_tensor *to = &c->tensor[c->tensors];

	if (!found || !found->stored)
		return bad_tensor(e, &t->name, "of the fragment is missing");
	if (!same_shape(t, found))
		return bad_tensor(
			e, &t->name, "has another shape than in the layout");
	*to = (struct dl_coded_tensor){.offset = t->offset,
		.elements = t->elements,
		.codes = stored->offset,
		.name = &t->name};
	if (found->scales) {
		to->codec = n->codec;
		to->scales = found->scales->offset;
	} else if (!plain_codec(stored->dtype, &to->codec)) {
		return bad_tensor(
			e, &t->name, "is not F32, F16, BF16 or coded");
	}
	c->tensors++;
	return 0;
}

static int place_all(struct dl_coded *c, const struct dl_layout *l, uint32_t p,
	const struct dl_encoding *n, const struct dl_header *h,
	struct dl_err *e)
{
	const struct dl_layout_fragment *f = &l->fragment[p];
	size_t stored = 0;
	int rc = 0;

	for (size_t i = f->first; !rc && i < f->first + f->tensors; i++)
		if (l->tensor[i].rule != DL_ALIAS)
			rc = place(c, &l->tensor[i], n, h, e);
	for (size_t i = 0; i < n->tensors; i++)
		stored += !!n->tensor[i].stored;
	if (!rc && stored != c->tensors)
		rc = dl_fail(e, DL_DATA, "%zu tensors, but fragment %u has %zu",
			stored, p, c->tensors);
	return rc;
}

int dl_coded_open(struct dl_coded *c, const struct dl_layout *l, uint32_t p,
	const struct dl_header *h, const void *data, struct dl_err *e)
{
	struct dl_encoding n;
	int rc = dl_encoding_read(&n, h, e);

	*c = (struct dl_coded){.data = data,
		.bytes = h->data_size,
		.elements = l->fragment[p].elements,
		.block = n.block,
		.tensor = dl_alloc_array(
			l->fragment[p].tensors, sizeof *c->tensor)};
	if (!rc)
		rc = place_all(c, l, p, &n, h, e);
	dl_encoding_release(&n);
	return rc;
}

void dl_coded_release(struct dl_coded *c)
{
	free(c->tensor);
	*c = (struct dl_coded){0};
}

/* The tensor that element at lies in. Empty ones share an offset with what
 * follows them: the last that begins there is not empty. */
static const struct dl_coded_tensor *tensor_at(
	const struct dl_coded *c, uint64_t at)
{
	size_t low = 0, high = c->tensors;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (c->tensor[mid].offset <= at)
			low = mid;
		else
			high = mid;
	}
	return &c->tensor[low];
}

/* Where the codes of t's values from value at on are, which begins a block. */
static const unsigned char *codes_at(
	const struct dl_coded *c, const struct dl_coded_tensor *t, uint64_t at)
{
	return c->data + t->codes + dl_codec_bytes(t->codec, at);
}

static const unsigned char *scales_at(
	const struct dl_coded *c, const struct dl_coded_tensor *t, uint64_t at)
{
	return dl_codec_is_scaled(t->codec)
		       ? c->data + t->scales + 2 * (at / c->block)
		       : NULL;
}

static void decode(const struct dl_coded *c, const struct dl_coded_tensor *t,
	uint64_t at, size_t n, float *out)
{
	dl_quant_decode(t->codec, c->block, codes_at(c, t, at),
		scales_at(c, t, at), n, out);
}

/* The same from inside a block: its beginning is decoded too, and dropped.
 * Returns how many values that gave. */
static size_t decode_inside(const struct dl_coded *c,
	const struct dl_coded_tensor *t, uint64_t at, size_t n, float *out)
{
	float block[DL_QUANT_BLOCK_MAX];
	size_t skip = (size_t)(at % c->block), part = c->block - skip;

	if (part > n)
		part = n;
	decode(c, t, at - skip, skip + part, block);
	memcpy(out, block + skip, part * sizeof *out);
	return part;
}

void dl_coded_read(const void *coded, size_t offset, size_t n, float *out)
{
	const struct dl_coded *c = coded;
	const struct dl_coded_tensor *t = n ? tensor_at(c, offset) : NULL;

	for (; n; t++) {
		uint64_t at = offset - t->offset;
		size_t part =
			t->elements - at < n ? (size_t)(t->elements - at) : n;
		size_t done = 0;

		if (part && dl_codec_is_scaled(t->codec) && at % c->block)
			done = decode_inside(c, t, at, part, out);
		if (done < part)
			decode(c, t, at + done, part - done, out + done);
		out += part;
		offset += part;
		n -= part;
	}
}

int dl_coded_codes(
	const void *coded, size_t offset, size_t n, struct dl_codes *out)
{
	const struct dl_coded *c = coded;
	const struct dl_coded_tensor *t = tensor_at(c, offset);
	uint64_t at = offset - t->offset;

	if (n > t->elements - at ||
		(dl_codec_is_scaled(t->codec) && at % c->block))
		return -1;
	*out = (struct dl_codes){
		t->codec, c->block, codes_at(c, t, at), scales_at(c, t, at)};
	return 0;
}

static void encode(const struct dl_quant *how, const struct dl_coded_tensor *t,
	uint64_t at, size_t n, const float *x, unsigned char *data)
{
	struct dl_quant q = *how;

	q.codec = t->codec;
	dl_quant_encode(&q,
		q.stochastic ? dl_quant_key(&q, t->name->s, t->name->n) : 0, at,
		x, n, data + t->codes + dl_codec_bytes(t->codec, at),
		data + t->scales + 2 * (at / q.block));
}

void dl_coded_put(const struct dl_coded *coded, const struct dl_quant *q,
	size_t offset, size_t n, const float *x, void *data)
{
	const struct dl_coded_tensor *t = tensor_at(coded, offset);

	encode(q, t, offset - t->offset, n, x, data);
}

/* A part of a fragment that is worked on by itself. */
struct chunk {
	const struct dl_coded_tensor *tensor;
	uint64_t at; /* of the tensor */
	size_t n;
};

struct work {
	const struct dl_coded *c;
	const struct dl_quant *q;
	struct chunk *chunk;
	size_t chunks;
	const float *x;
	unsigned char *data;
	float *out;
};

static void cut(struct work *k)
{
	const struct dl_coded *c = k->c;

	for (size_t i = 0; i < c->tensors; i++)
		k->chunks += (size_t)(c->tensor[i].elements / CHUNK + 1);
	k->chunk = dl_alloc_array(k->chunks, sizeof *k->chunk);
	k->chunks = 0;
	for (size_t i = 0; i < c->tensors; i++)
		for (uint64_t at = 0; at < c->tensor[i].elements; at += CHUNK) {
			uint64_t left = c->tensor[i].elements - at;

			k->chunk[k->chunks++] = (struct chunk){&c->tensor[i],
				at, left < CHUNK ? (size_t)left : CHUNK};
		}
}

static void decode_chunk(void *ctx, size_t i)
{
	const struct work *k = ctx;
	const struct chunk *part = &k->chunk[i];

	decode(k->c, part->tensor, part->at, part->n,
		k->out + part->tensor->offset + part->at);
}

void dl_coded_decode(struct dl_pool *pool, const struct dl_coded *c, float *out)
{
	struct work k = {.c = c, .out = out};

	cut(&k);
	dl_pool_run(pool, k.chunks, decode_chunk, &k);
	free(k.chunk);
}

static int stays(const struct dl_layout_tensor *t)
{
	return !dl_dtype_is_float(t->dtype);
}

int dl_coded_check(
	const struct dl_layout *l, const struct dl_quant *q, struct dl_err *e)
{
	int rc = 0;

	if (!dl_codec_is_scaled(q->codec))
		return 0;
	for (size_t i = 0; !rc && i < l->tensors; i++) {
		struct dl_string s = dl_encoding_scales(&l->tensor[i].name);

		if (!stays(&l->tensor[i]) && dl_layout_find(l, s.s, s.n))
			rc = bad_tensor(
				e, &s, "has the name of another's scales");
		free((char *)s.s);
	}
	return rc;
}

void dl_coded_record(const struct dl_layout *l, uint32_t p,
	const struct dl_quant *q, struct dl_writer *w)
{
	const struct dl_layout_fragment *f = &l->fragment[p];

	dl_encoding_put(w, q);
	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule == DL_ALIAS)
			continue;
		if (stays(t))
			dl_writer_tensor(w, t->name.s, t->name.n, DL_F32,
				t->rank, t->shape);
		else
			dl_encoding_tensor(
				w, q, &t->name, DL_F32, t->rank, t->shape);
	}
}

uint64_t dl_coded_bytes(
	const struct dl_layout *l, uint32_t p, const struct dl_quant *q)
{
	const struct dl_layout_fragment *f = &l->fragment[p];
	uint64_t bytes = 0;

	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule == DL_ALIAS)
			continue;
		if (stays(t))
			bytes += t->elements * sizeof(float);
		else
			bytes += dl_codec_bytes(q->codec, t->elements) +
				 2 * dl_codec_scales(
					     q->codec, q->block, t->elements);
	}
	return bytes;
}

void dl_coded_init(struct dl_coded *c, const struct dl_layout *l, uint32_t p,
	const struct dl_quant *q, const void *data)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf header = DL_BUF_INIT;
	struct dl_header h;
	struct dl_err e;

	int rc;

	dl_coded_record(l, p, q, &w);
	dl_writer_finish(&w, &header, NULL);
	rc = dl_header_parse(&h, header.data + 8, header.len - 8, &e);
	assert(!rc); /* see dl_coded_check */
	rc = dl_coded_open(c, l, p, &h, data, &e);
	assert(!rc);
	dl_header_release(&h);
	dl_buf_free(&header);
	dl_writer_release(&w);
}

static void encode_chunk(void *ctx, size_t i)
{
	const struct work *k = ctx;
	const struct chunk *part = &k->chunk[i];

	encode(k->q, part->tensor, part->at, part->n,
		k->x + part->tensor->offset + part->at, k->data);
}

void dl_coded_encode(struct dl_pool *pool, const struct dl_layout *l,
	uint32_t p, const struct dl_quant *q, const float *x, void *data)
{
	struct dl_coded c;
	struct work k = {.c = &c, .q = q, .x = x, .data = data};

	dl_coded_init(&c, l, p, q, data);
	cut(&k);
	dl_pool_run(pool, k.chunks, encode_chunk, &k);
	free(k.chunk);
	dl_coded_release(&c);
}
