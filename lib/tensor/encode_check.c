#include "tensor/encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/encode_values.h"
#include "tensor/encoding.h"

static int bad_tensor(
	struct dl_err *e, const struct dl_tensor *t, const char *fact)
{
	char name[80];

	return dl_fail(e, DL_DATA, "tensor \"%s\" %s",
		dl_scrub(name, sizeof name, t->name.s, t->name.n), fact);
}

static int bad_value(const struct encode_source *s, uint64_t i,
	const char *fact, struct dl_err *e)
{
	char name[80];

	return dl_fail(e, DL_DATA, "tensor \"%s\": element %llu is %s",
		dl_scrub(name, sizeof name, s->t->name.s, s->t->name.n),
		(unsigned long long)i, fact);
}

/* Is one element, as it stands in the file, finite? It may be so and be too
 * large for F32. */
static int finite_in_file(const struct encode_source *s, uint64_t i)
{
	const struct dl_records_entry *r = &s->n->in->record[s->n->record];
	unsigned char raw[sizeof(double)];
	struct dl_err e;
	double v;
	uint64_t u;

	if (s->t->dtype != DL_F64)
		return 0;
	if (dl_records_read(s->n->in, r->at + s->t->offset + 8 * i, raw,
		    sizeof raw, &e))
		return 0;
	u = dl_le64(raw);
	memcpy(&v, &u, sizeof v);
	return isfinite(v);
}

static int check_value(const struct encode_source *s, uint64_t i, float x,
	float y, struct dl_err *e)
{
	if (isfinite(x) && isfinite(y))
		return 0;
	if (isfinite(x))
		return bad_value(s, i,
			s->n->q->codec == DL_CODEC_F16 ? "too large for F16"
						       : "too large for BF16",
			e);
	if (isnan(x))
		return bad_value(s, i, "NaN", e);
	if (finite_in_file(s, i))
		return bad_value(s, i, "too large for F32", e);
	return bad_value(s, i,
		s->owed ? "infinite, with what is owed" : "infinite", e);
}

static int check_chunk(void *ctx, uint64_t at, size_t n, struct dl_err *e)
{
	const struct encode_source *s = ctx;
	struct encode_chunk c;
	const float *narrow = c.value;
	int rc = encode_read(s, at, n, c.value, e);

	if (!rc && !dl_codec_is_scaled(s->n->q->codec)) {
		dl_from_f32(
			c.codes, c.value, dl_codec_dtype(s->n->q->codec), n);
		dl_to_f32(
			c.restored, c.codes, dl_codec_dtype(s->n->q->codec), n);
		narrow = c.restored;
	}
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_value(s, at + i, c.value[i], narrow[i], e);
	return rc;
}

static int check_values(
	const struct dl_encode *n, const struct dl_tensor *t, struct dl_err *e)
{
	struct encode_source s;

	encode_source_init(&s, n, t);
	return dl_chunks(n->pool, t->elements, check_chunk, &s, e);
}

static int check_scale_name(
	const struct dl_encode *n, const struct dl_tensor *t, struct dl_err *e)
{
	struct dl_string s;
	const struct dl_tensor *other;

	if (!dl_codec_is_scaled(n->q->codec))
		return 0;
	s = dl_encoding_scales(&t->name);
	other = dl_header_find(encode_header(n), s.s, s.n);
	free((char *)s.s);
	return other ? bad_tensor(e, other, "has the name of another's scales")
		     : 0;
}

static int check_owed(
	const struct dl_encode *n, const struct dl_tensor *t, struct dl_err *e)
{
	const struct dl_tensor *owed =
		dl_header_find(encode_owed(n), t->name.s, t->name.n);

	if (!owed)
		return bad_tensor(e, t, "is not there");
	if (owed->dtype != DL_F32)
		return bad_tensor(e, t, "is not F32");
	if (owed->rank != t->rank ||
		memcmp(owed->shape, t->shape, t->rank * sizeof *t->shape))
		return bad_tensor(e, t, "has another shape");
	return 0;
}

/* Does owed have the record's float tensors, and no others? */
static int check_all_owed(const struct dl_encode *n, struct dl_err *e)
{
	const struct dl_header *h = encode_header(n), *o = encode_owed(n);
	size_t floats = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < h->tensors; i++)
		if (dl_dtype_is_float(h->tensor[i].dtype)) {
			floats++;
			rc = check_owed(n, &h->tensor[i], e);
		}
	if (!rc && floats != o->tensors)
		rc = dl_fail(e, DL_DATA, "%zu tensors, where %zu are encoded",
			o->tensors, floats);
	return rc ? dl_at(e, "%s", n->owed->path) : 0;
}

int dl_encode_check(const struct dl_encode *n, struct dl_err *e)
{
	const struct dl_header *h = encode_header(n);
	const struct dl_string *codec = dl_header_meta(h, "dl.codec");
	char word[40];
	int rc = 0;

	if (codec && strcmp(codec->s, "f32") != 0)
		return dl_fail(e, DL_DATA,
			"encoded already, as %s; dl-quant -d decodes it",
			dl_scrub(word, sizeof word, codec->s, codec->n));
	if (n->owed)
		rc = check_all_owed(n, e);
	for (size_t i = 0; !rc && i < h->tensors; i++) {
		if (!dl_dtype_is_float(h->tensor[i].dtype))
			continue;
		rc = check_scale_name(n, &h->tensor[i], e);
		if (!rc)
			rc = check_values(n, &h->tensor[i], e);
	}
	return rc;
}
