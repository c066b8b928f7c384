#include "tensor/encode_values.h"

#include <math.h>

#include "tensor/decode.h"

void encode_source_init(struct encode_source *s, const struct dl_encode *n,
	const struct dl_tensor *t)
{
	*s = (struct encode_source){.n = n, .t = t};
	if (n->owed)
		s->owed = dl_header_find(encode_owed(n), t->name.s, t->name.n);
	if (n->q->stochastic)
		s->key = dl_quant_key(n->q, t->name.s, t->name.n);
}

static int check_owed(const struct encode_source *s, uint64_t at,
	const float *owed, size_t n, struct dl_err *e)
{
	size_t bad = 0;
	char name[80];

	while (bad < n && isfinite(owed[bad]))
		bad++;
	if (bad == n)
		return 0;
	dl_fail(e, DL_DATA, "tensor \"%s\": element %llu is not finite",
		dl_scrub(name, sizeof name, s->owed->name.s, s->owed->name.n),
		(unsigned long long)at + bad);
	return dl_at(e, "%s", s->n->owed->path);
}

int encode_read(const struct encode_source *s, uint64_t at, size_t n,
	float *out, struct dl_err *e)
{
	unsigned char raw[DL_CHUNK * sizeof(double)];
	const struct dl_records_entry *r = &s->n->in->record[s->n->record];
	unsigned width = dl_dtype_bits(s->t->dtype) / 8;
	float owed[DL_CHUNK];
	int rc = dl_records_read(
		s->n->in, r->at + s->t->offset + at * width, raw, n * width, e);

	if (rc)
		return rc;
	dl_to_f32(out, raw, s->t->dtype, n);
	if (!s->owed)
		return 0;
	r = &s->n->owed->record[s->n->owed_record];
	rc = dl_records_read(s->n->owed,
		r->at + s->owed->offset + at * sizeof(float), raw,
		n * sizeof(float), e);
	if (rc)
		return rc;
	dl_to_f32(owed, raw, DL_F32, n);
	if (check_owed(s, at, owed, n, e))
		return e->code;
	for (size_t i = 0; i < n; i++)
		out[i] += owed[i];
	return 0;
}

int encode_do(const struct encode_source *s, uint64_t at, size_t n,
	struct encode_chunk *c, struct dl_err *e)
{
	int rc = encode_read(s, at, n, c->value, e);

	if (!rc)
		dl_quant_encode(
			s->n->q, s->key, at, c->value, n, c->codes, c->scales);
	return rc;
}

void encode_restore(
	const struct encode_source *s, size_t n, struct encode_chunk *c)
{
	unsigned char raw[DL_CHUNK * sizeof(double)];

	dl_quant_decode(s->n->q->codec, s->n->q->block, c->codes, c->scales, n,
		c->restored);
	dl_decode_restore(raw, c->restored, s->t->dtype, n);
	dl_to_f32(c->restored, raw, s->t->dtype, n);
}
