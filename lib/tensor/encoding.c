#include "tensor/encoding.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/num.h"

#define SHAPE "dl.shape."
#define DTYPE "dl.dtype."
#define SCALE ".scale"

enum { SHAPE_NUMBER = 24, PREFIX = sizeof SHAPE - 1 };

static void join(struct dl_buf *out, const char *prefix,
	const struct dl_string *name, const char *suffix)
{
	dl_buf_str(out, prefix);
	dl_buf_add(out, name->s, name->n);
	dl_buf_str(out, suffix);
	dl_buf_cstr(out);
}

struct dl_string dl_encoding_scales(const struct dl_string *name)
{
	struct dl_buf b = DL_BUF_INIT;

	join(&b, "", name, SCALE);
	return (struct dl_string){(char *)b.data, b.len};
}

void dl_encoding_put(struct dl_writer *w, const struct dl_quant *q)
{
	dl_writer_meta(w, "dl.codec", dl_codec_name(q->codec));
	if (dl_codec_is_scaled(q->codec))
		dl_writer_meta_u64(w, "dl.block", q->block);
}

static void put_shape(struct dl_writer *w, const struct dl_string *name,
	unsigned rank, const uint64_t *shape)
{
	struct dl_buf key = DL_BUF_INIT, value = DL_BUF_INIT;

	join(&key, SHAPE, name, "");
	for (unsigned i = 0; i < rank; i++)
		dl_buf_printf(&value, "%s%" PRIu64, i ? "x" : "", shape[i]);
	if (!rank)
		dl_buf_byte(&value, '-');
	dl_writer_meta_pair(w, key.data, key.len, value.data, value.len);
	dl_buf_free(&key);
	dl_buf_free(&value);
}

static void put_dtype(
	struct dl_writer *w, const struct dl_string *name, enum dl_dtype dtype)
{
	struct dl_buf key = DL_BUF_INIT;
	const char *value = dl_dtype_name(dtype);

	join(&key, DTYPE, name, "");
	dl_writer_meta_pair(w, key.data, key.len, value, strlen(value));
	dl_buf_free(&key);
}

size_t dl_encoding_tensor(struct dl_writer *w, const struct dl_quant *q,
	const struct dl_string *name, enum dl_dtype dtype, unsigned rank,
	const uint64_t *shape)
{
	uint64_t elements = 1, bytes, blocks;
	struct dl_string scales;
	size_t handle;

	if (dtype != DL_F32)
		put_dtype(w, name, dtype);
	if (!dl_codec_is_scaled(q->codec))
		return dl_writer_tensor(w, name->s, name->n,
			dl_codec_dtype(q->codec), rank, shape);
	for (unsigned i = 0; i < rank; i++)
		elements *= shape[i];
	bytes = dl_codec_bytes(q->codec, elements);
	blocks = dl_codec_scales(q->codec, q->block, elements);
	put_shape(w, name, rank, shape);
	handle = dl_writer_tensor(w, name->s, name->n, DL_U8, 1, &bytes);
	scales = dl_encoding_scales(name);
	dl_writer_tensor(w, scales.s, scales.n, DL_BF16, 1, &blocks);
	free((char *)scales.s);
	return handle;
}

struct reading {
	struct dl_encoding *n;
	const struct dl_header *h;
	uint64_t *shape; /* where the next one goes */
	struct dl_err *e;
};

static int bad_tensor(
	const struct reading *r, const struct dl_string *name, const char *fact)
{
	char text[80];

	return dl_fail(r->e, DL_DATA, "tensor \"%s\" %s",
		dl_scrub(text, sizeof text, name->s, name->n), fact);
}

static const struct dl_string *meta_of(const struct dl_header *h,
	const char *prefix, const struct dl_string *name)
{
	struct dl_buf key = DL_BUF_INIT;
	const struct dl_string *found;

	join(&key, prefix, name, "");
	found = dl_header_meta_find(h, (char *)key.data, key.len);
	dl_buf_free(&key);
	return found;
}

static int read_number(const char *s, size_t n, uint64_t *out)
{
	char digits[SHAPE_NUMBER];

	if (n >= sizeof digits)
		return -1;
	memcpy(digits, s, n);
	digits[n] = 0;
	return dl_parse_u64(digits, 0, UINT64_MAX, out);
}

/* "2x3", or "-" for a scalar. */
static int read_shape(
	struct reading *r, const struct dl_string *text, struct dl_encoded *t)
{
	const char *s = text->s, *end = text->s + text->n;

	t->shape = r->shape;
	t->rank = 0;
	t->elements = 1;
	if (text->n == 1 && *s == '-')
		return 0;
	for (;;) {
		const char *x = memchr(s, 'x', (size_t)(end - s));
		uint64_t d;

		if (read_number(s, (size_t)((x ? x : end) - s), &d))
			return -1;
		if (d && t->elements > UINT64_MAX / 64 / d)
			return -1;
		t->elements *= d;
		*r->shape++ = d;
		t->rank++;
		if (!x)
			return 0;
		s = x + 1;
	}
}

static int read_dtype(struct reading *r, struct dl_encoded *t)
{
	const struct dl_string *v = meta_of(r->h, DTYPE, &t->stored->name);

	t->dtype = DL_F32;
	if (v && (dl_dtype_parse(v->s, v->n, &t->dtype) ||
			 !dl_dtype_is_float(t->dtype)))
		return bad_tensor(r, &t->stored->name,
			"cannot be decoded to the type it names");
	return 0;
}

static int read_scaled(struct reading *r, struct dl_encoded *t)
{
	const struct dl_string *name = &t->stored->name;
	const struct dl_string *shape = meta_of(r->h, SHAPE, name);
	struct dl_string scales;
	const struct dl_tensor *s;

	if (!shape)
		return 0;
	if (read_shape(r, shape, t))
		return bad_tensor(r, name, "has a bad " SHAPE);
	if (t->stored->dtype != DL_U8 || t->stored->rank != 1 ||
		t->stored->size != dl_codec_bytes(r->n->codec, t->elements))
		return bad_tensor(r, name,
			"is not U8 of as many bytes as its "
			"shape takes");
	scales = dl_encoding_scales(name);
	s = dl_header_find(r->h, scales.s, scales.n);
	free((char *)scales.s);
	if (!s)
		return bad_tensor(r, name, "has no scales");
	if (s->dtype != DL_BF16 || s->rank != 1 ||
		s->elements !=
			dl_codec_scales(r->n->codec, r->n->block, t->elements))
		return bad_tensor(r, &s->name, "is not one BF16 a block");
	t->scales = s;
	t->coded = 1;
	r->n->tensor[s - r->h->tensor].stored = NULL;
	return read_dtype(r, t);
}

static int read_tensor(struct reading *r, size_t i)
{
	const struct dl_tensor *s = &r->h->tensor[i];
	struct dl_encoded *t = &r->n->tensor[i];

	if (!t->stored || !r->n->coded)
		return 0;
	if (dl_codec_is_scaled(r->n->codec))
		return read_scaled(r, t);
	t->coded = s->dtype == dl_codec_dtype(r->n->codec);
	return t->coded ? read_dtype(r, t) : 0;
}

static int read_codec(struct reading *r)
{
	const struct dl_string *v = dl_header_meta(r->h, "dl.codec");
	struct dl_encoding *n = r->n;
	uint64_t block;
	char word[40];

	if (!v)
		return 0;
	if (v->n != strlen(v->s) || dl_codec_parse(v->s, &n->codec))
		return dl_fail(r->e, DL_DATA, "unknown codec \"%s\"",
			dl_scrub(word, sizeof word, v->s, v->n));
	n->coded = 1;
	if (!dl_codec_is_scaled(n->codec))
		return 0;
	if (dl_header_meta_u64(r->h, "dl.block", &block, r->e))
		return DL_DATA;
	if (!dl_quant_block_valid(block))
		return dl_fail(r->e, DL_DATA,
			"dl.block is not a power of two from %d to %d",
			DL_QUANT_BLOCK_MIN, DL_QUANT_BLOCK_MAX);
	n->block = (uint32_t)block;
	return 0;
}

/* As many numbers as all shapes can hold. */
static uint64_t *room_for_shapes(const struct dl_header *h)
{
	size_t room = 1;

	for (size_t i = 0; i < h->metas; i++)
		if (h->meta[i][0].n >= PREFIX &&
			!memcmp(h->meta[i][0].s, SHAPE, PREFIX))
			room += h->meta[i][1].n / 2 + 1;
	return dl_alloc_array(room, sizeof(uint64_t));
}

int dl_encoding_read(
	struct dl_encoding *n, const struct dl_header *h, struct dl_err *e)
{
	struct reading r = {n, h, NULL, e};
	int rc;

	*n = (struct dl_encoding){.tensors = h->tensors};
	rc = read_codec(&r);
	if (rc)
		return rc;
	n->tensor = dl_alloc_array(h->tensors, sizeof *n->tensor);
	n->shapes = r.shape = room_for_shapes(h);
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[i];

		n->tensor[i] = (struct dl_encoded){.stored = t,
			.codec = n->codec,
			.dtype = t->dtype,
			.rank = t->rank,
			.shape = t->shape,
			.elements = t->elements};
	}
	for (size_t i = 0; !rc && i < h->tensors; i++)
		rc = read_tensor(&r, i);
	return rc;
}

void dl_encoding_release(struct dl_encoding *n)
{
	free(n->tensor);
	free(n->shapes);
	*n = (struct dl_encoding){0};
}
