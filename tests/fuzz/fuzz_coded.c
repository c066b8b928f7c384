/*
 * Any record as one that may be encoded: what it says of its tensors is refused
 * or can be decoded, whole and in parts, which must agree, and what was decoded
 * encodes and decodes to itself.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tensor/coded.h"
#include "tensor/encoding.h"

static const struct dl_limits limits = DL_LIMITS_CONTROL;

static const char layout_text[] =
	"# name\tdtype\tshape\telements\tfragment\trule\n"
	"# format\t1\n"
	"# strategy\tbalanced\n"
	"a\tF32\t3x7\t21\t0\trda\n"
	"b\tF32\t-\t1\t0\tmean\n";

static int all_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return 0;
	return 1;
}

/* Encodes n values and decodes them into y. */
static void round_trip(
	const struct dl_quant *q, const float *x, size_t n, float *y)
{
	unsigned char *codes = dl_alloc(dl_codec_bytes(q->codec, n) + 1);
	unsigned char *scales =
		dl_alloc(2 * dl_codec_scales(q->codec, q->block, n) + 1);

	dl_quant_encode(q, 0, 0, x, n, codes, scales);
	dl_quant_decode(q->codec, q->block, codes, scales, n, y);
	free(codes);
	free(scales);
}

/* Values that come from strangers may encode to others, once. */
static void check_values(
	const struct dl_encoding *how, const struct dl_encoded *t, float *x)
{
	struct dl_quant q = {how->codec, how->block, 0, 0};
	float *y = dl_alloc_array(t->elements + 1, sizeof *y);
	float *z = dl_alloc_array(t->elements + 1, sizeof *z);

	round_trip(&q, x, t->elements, y);
	if (all_finite(y, t->elements)) {
		round_trip(&q, y, t->elements, z);
		if (memcmp(y, z, t->elements * sizeof *y) != 0)
			abort();
	}
	free(y);
	free(z);
}

static void decode(const struct dl_encoding *how, const struct dl_record *r)
{
	for (size_t i = 0; i < how->tensors; i++) {
		const struct dl_encoded *t = &how->tensor[i];
		float *x;

		/* Limited: a shape with a 0 has any number of rows. */
		if (!t->stored || !t->coded || t->elements > 1 << 20)
			continue;
		x = dl_alloc_array(t->elements + 1, sizeof *x);
		dl_quant_decode(t->codec, how->block,
			r->data + t->stored->offset,
			t->scales ? r->data + t->scales->offset : NULL,
			t->elements, x);
		if (all_finite(x, t->elements))
			check_values(how, t, x);
		free(x);
	}
}

/* As a fragment of a layout: any part is that part of the whole. */
static void open_fragment(const struct dl_record *r)
{
	float all[22], part[22];
	struct dl_layout l;
	struct dl_coded c;
	struct dl_err e = {0};

	if (dl_layout_parse(&l, layout_text, sizeof layout_text - 1, &e))
		abort();
	if (dl_coded_open(&c, &l, 0, &r->header, r->data, &e)) {
		if (e.code != DL_DATA || !e.text[0])
			abort();
	} else {
		dl_coded_decode(NULL, &c, all);
		for (size_t at = 0; at < 22; at++) {
			dl_coded_read(&c, at, 22 - at, part);
			if (memcmp(part, all + at, (22 - at) * sizeof *all))
				abort();
		}
	}
	dl_coded_release(&c);
	dl_layout_release(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_encoding how;
	struct dl_record r;

	if (dl_record_parse(&r, data, n, limits, &e))
		return 0;
	if (!dl_encoding_read(&how, &r.header, &e))
		decode(&how, &r);
	else if (e.code != DL_DATA || !e.text[0])
		abort();
	dl_encoding_release(&how);
	open_fragment(&r);
	dl_record_release(&r);
	return 0;
}
