/*
 * Fragments that wait encoded: what is written opens, any part can be read,
 * and what does not fit the layout is refused.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "tensor/coded.h"

#include <string.h>

#include "../tap.h"

/* Names whose scales sort in another order than they do, an empty tensor, a
 * scalar, odd lengths, an integer tensor, a tied one. */
static const char text[] = "# dl-layout\t1\n"
			   "# name\tdtype\tshape\telements\tfragment\trule\n"
			   "# format\t1\n"
			   "# strategy\tbalanced\n"
			   "a\tF32\t3x1001\t3003\t0\trda\n"
			   "a-b\tBF16\t70\t70\t0\tmean\n"
			   "c\tF32\t0x4\t0\t0\trda\n"
			   "d\tF32\t-\t1\t0\trda\n"
			   "e\tI64\t5\t5\t0\tlast\n"
			   "f\tF32\t3x1001\t3003\t0\talias=a\n"
			   "g\tF16\t70000\t70000\t0\trda\n";

enum { ELEMENTS = 3003 + 70 + 1 + 5 + 70000 };

static struct dl_layout layout;

static float *values(void)
{
	float *x = dl_alloc_array(ELEMENTS, sizeof *x);
	struct dl_rng r = {1, 0};

	for (size_t i = 0; i < ELEMENTS; i++)
		x[i] = (float)(1e-3 * dl_rng_normal(&r));
	return x;
}

/* What every tensor gives when it is encoded and decoded by itself. */
static float *expected(const struct dl_quant *q, const float *x)
{
	float *y = dl_alloc_array(ELEMENTS, sizeof *y);

	for (size_t i = 0; i < layout.tensors; i++) {
		const struct dl_layout_tensor *t = &layout.tensor[i];
		uint64_t n = t->elements;
		unsigned char *codes = dl_alloc(4 * n + 1);
		unsigned char *scales = dl_alloc(2 * n + 1);
		struct dl_quant own = *q;

		if (!dl_dtype_is_float(t->dtype))
			own.codec = DL_CODEC_F32;
		if (t->rule != DL_ALIAS) {
			dl_quant_encode(&own,
				dl_quant_key(&own, t->name.s, t->name.n), 0,
				x + t->offset, n, codes, scales);
			dl_quant_decode(own.codec, own.block, codes, scales, n,
				y + t->offset);
		}
		free(codes);
		free(scales);
	}
	return y;
}

/* The whole record: header, then data. */
static void make_record(struct dl_buf *out, const struct dl_quant *q,
	struct dl_pool *pool, const float *x)
{
	struct dl_writer w = DL_WRITER_INIT;
	size_t head;

	dl_coded_record(&layout, 0, q, &w);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
	head = out->len;
	dl_buf_reserve(out, dl_coded_bytes(&layout, 0, q));
	out->len += dl_coded_bytes(&layout, 0, q);
	dl_coded_encode(pool, &layout, 0, q, x, out->data + head);
}

static int reads_anywhere(const struct dl_coded *c, const float *y)
{
	float part[5000];
	struct dl_rng r = {2, 0};
	int same = 1;

	for (int i = 0; i < 300; i++) {
		size_t n = dl_rng_below(&r, 5000);
		size_t at = dl_rng_below(&r, ELEMENTS - n + 1);

		dl_coded_read(c, at, n, part);
		same &= !memcmp(part, y + at, n * sizeof *y);
	}
	return same;
}

/* Codes are found where a block begins, within a tensor, and give the same. */
static int finds_codes(const struct dl_coded *c, int scaled, const float *y)
{
	const size_t last = 3003 + 70 + 1 + 5; /* the last tensor's place */
	struct dl_codes codes;
	float part[5000];
	struct dl_rng r = {3, 0};
	int same = 1;

	for (size_t i = 0; i < 60; i++) {
		size_t n = 1 + dl_rng_below(&r, 5000);
		size_t at = last + i * DL_QUANT_BLOCK_MAX;

		same &= !dl_coded_codes(c, at, n, &codes);
		dl_quant_decode(codes.codec, codes.block, codes.codes,
			codes.scales, n, part);
		same &= !memcmp(part, y + at, n * sizeof *y);
	}
	return same && dl_coded_codes(c, 3000, 4, &codes) &&
	       !dl_coded_codes(c, last + 1, 4, &codes) == !scaled;
}

static void test_codec(struct dl_pool *pool, const struct dl_quant *q)
{
	const struct dl_limits limits = DL_LIMITS_FILE;
	float *x = values(), *y = expected(q, x);
	float *all = dl_alloc_array(ELEMENTS, sizeof *all);
	struct dl_buf b = DL_BUF_INIT;
	struct dl_record r;
	struct dl_coded c;
	struct dl_err e = {.text = ""};
	int rc;

	make_record(&b, q, pool, x);
	rc = dl_record_parse(&r, b.data, b.len, limits, &e);
	if (ok(!rc, "%s: a record %s", dl_codec_name(q->codec), e.text)) {
		rc = dl_coded_open(&c, &layout, 0, &r.header, r.data, &e);
		ok(!rc, "opens %s", e.text);
		ok(c.bytes == dl_coded_bytes(&layout, 0, q) &&
				c.elements == ELEMENTS,
			"is as large as it was said to be");
		dl_coded_decode(pool, &c, all);
		ok(!memcmp(all, y, ELEMENTS * sizeof *y),
			"decodes to what its tensors do");
		ok(reads_anywhere(&c, y), "reads the same in any parts");
		ok(finds_codes(&c, dl_codec_is_scaled(q->codec), y),
			"and has codes of the same");
		dl_coded_release(&c);
		dl_record_release(&r);
	}
	dl_buf_free(&b);
	free(x);
	free(y);
	free(all);
}

/* A header that is not what the layout wants, and the fact that says so. */
static const struct refused {
	const char *json, *fact;
} refused[] = {
#define CODED "{\"__metadata__\":{\"dl.codec\":\"int4\",\"dl.block\":\"64\""
#define TENSOR(name, dtype, n, from, to)                                       \
	",\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" n                 \
	"],\"data_offsets\":[" from "," to "]}"
	{"{\"__metadata__\":{\"dl.codec\":\"int3\"}}",
		"unknown codec \"int3\""},
	{"{\"__metadata__\":{\"dl.codec\":\"int4\"}}", "dl.block is missing"},
	{"{\"__metadata__\":{\"dl.codec\":\"int4\",\"dl.block\":\"63\"}}",
		"dl.block is not a power of two from 16 to 1024"},
	{CODED "}}", "tensor \"a\" of the fragment is missing"},
	{CODED ",\"dl.shape.a\":\"3x\"}" TENSOR("a", "U8", "4", "0", "4") "}",
		"tensor \"a\" has a bad dl.shape."},
	{CODED ",\"dl.shape.a\":\"18446744073709551615x9\"}" TENSOR(
		 "a", "U8", "4", "0", "4") "}",
		"tensor \"a\" has a bad dl.shape."},
	{CODED ",\"dl.shape.a\":\"9\"}" TENSOR("a", "U8", "4", "0", "4") "}",
		"is not U8 of as many bytes as its shape takes"},
	{CODED ",\"dl.shape.a\":\"8\"}" TENSOR("a", "U8", "4", "0", "4") "}",
		"tensor \"a\" has no scales"},
	{CODED ",\"dl.shape.a\":\"8\"}" TENSOR("a.scale", "BF16", "2", "0", "4")
			TENSOR("a", "U8", "4", "4", "8") "}",
		"tensor \"a.scale\" is not one BF16 a block"},
	{CODED ",\"dl.shape.a\":\"8\",\"dl.dtype.a\":\"I8\"}" TENSOR("a.scale",
		 "BF16", "1", "0", "2") TENSOR("a", "U8", "4", "2", "6") "}",
		"cannot be decoded to the type it names"},
	{CODED ",\"dl.shape.a\":\"8\"}" TENSOR("a.scale", "BF16", "1", "0", "2")
			TENSOR("a", "U8", "4", "2", "6") "}",
		"tensor \"a\" has another shape than in the layout"},
	{"{\"a\":{\"dtype\":\"I32\",\"shape\":[3,1001],\"data_offsets\":[0,"
	 "12012]}}",
		"tensor \"a\" is not F32, F16, BF16 or coded"},
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const struct refused *f = &refused[i];
		struct dl_header h;
		struct dl_coded c;
		struct dl_err e = {.text = "not refused"};

		if (dl_header_parse(&h, f->json, strlen(f->json), &e)) {
			ok(0, "case %zu: %s", i, e.text);
			continue;
		}
		dl_coded_open(&c, &layout, 0, &h, NULL, &e);
		ok(e.code == DL_DATA && strstr(e.text, f->fact), "%s: %s",
			f->fact, e.text);
		dl_coded_release(&c);
		dl_header_release(&h);
	}
}

int main(void)
{
	struct dl_pool *pool = dl_pool_new(3);
	struct dl_err e = {.text = ""};

	if (!ok(!dl_layout_parse(&layout, text, sizeof text - 1, &e),
		    "layout %s", e.text))
		return done_testing();
	for (int i = 0; i < DL_CODECS; i++)
		test_codec(
			pool, &(struct dl_quant){(enum dl_codec)i, 64, 0, 0});
	test_codec(pool, &(struct dl_quant){DL_CODEC_INT4, 1024, 1, 7});
	test_codec(NULL, &(struct dl_quant){DL_CODEC_INT1, 16, 0, 0});
	test_refused();
	dl_layout_release(&layout);
	dl_pool_free(pool);
	return done_testing();
}
