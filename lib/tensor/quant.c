#include "tensor/quant.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tensor/quant_bits.h"
#include "tensor/quant_kernels.h"

enum { LANES = 16, AT_ONCE = 256 };

static const char *const names[DL_CODECS] = {
	[DL_CODEC_F32] = "f32",
	[DL_CODEC_F16] = "f16",
	[DL_CODEC_BF16] = "bf16",
	[DL_CODEC_INT8] = "int8",
	[DL_CODEC_INT4] = "int4",
	[DL_CODEC_FP4] = "fp4",
	[DL_CODEC_INT2] = "int2",
	[DL_CODEC_INT1] = "int1",
};

const char *dl_codec_name(enum dl_codec c)
{
	return names[c];
}

int dl_codec_parse(const char *s, enum dl_codec *out)
{
	for (int i = 0; i < DL_CODECS; i++)
		if (!strcmp(s, names[i])) {
			*out = (enum dl_codec)i;
			return 0;
		}
	return -1;
}

int dl_codec_is_scaled(enum dl_codec c)
{
	return c >= DL_CODEC_INT8;
}

enum dl_dtype dl_codec_dtype(enum dl_codec c)
{
	return c == DL_CODEC_F32    ? DL_F32
	       : c == DL_CODEC_F16  ? DL_F16
	       : c == DL_CODEC_BF16 ? DL_BF16
				    : DL_U8;
}

int dl_quant_block_valid(uint64_t block)
{
	return block >= DL_QUANT_BLOCK_MIN && block <= DL_QUANT_BLOCK_MAX &&
	       !(block & (block - 1));
}

uint64_t dl_codec_bytes(enum dl_codec c, uint64_t n)
{
	unsigned per;

	if (!dl_codec_is_scaled(c))
		return n * (dl_dtype_bits(dl_codec_dtype(c)) / 8);
	per = 8 / quant_width(c);
	return n / per + (n % per != 0);
}

uint64_t dl_codec_scales(enum dl_codec c, uint32_t block, uint64_t n)
{
	return dl_codec_is_scaled(c) ? n / block + (n % block != 0) : 0;
}

uint64_t dl_quant_key(const struct dl_quant *q, const char *name, size_t n)
{
	uint64_t key = dl_rng_key(q->seed, n);

	for (size_t i = 0; i < n; i++)
		key = dl_rng_key(key, (unsigned char)name[i]);
	return key;
}

/* The block at the end of a tensor, which may be shorter. */
static void encode_last(const struct dl_quant *q, const float *x, size_t n,
	unsigned char *codes, unsigned char *scales)
{
	unsigned char code[DL_QUANT_BLOCK_MAX];
	float padded[DL_QUANT_BLOCK_MAX];

	memset(padded, 0, sizeof padded);
	memcpy(padded, x, n * sizeof *x);
	dl_quant_kernels()->encode[q->codec](padded, n, q->block, code, scales);
	memcpy(codes, code, dl_codec_bytes(q->codec, n));
}

static void encode_nearest(const struct dl_quant *q, const float *x, size_t n,
	unsigned char *codes, unsigned char *scales)
{
	size_t whole = n / q->block * q->block;

	dl_quant_kernels()->encode[q->codec](x, whole, q->block, codes, scales);
	if (whole < n)
		encode_last(q, x + whole, n - whole,
			codes + dl_codec_bytes(q->codec, whole),
			scales + 2 * (whole / q->block));
}

static void encode_by_chance(const struct dl_quant *q, uint64_t key,
	uint64_t at, const float *x, size_t n, unsigned char *codes,
	unsigned char *scales)
{
	int scaled = dl_codec_is_scaled(q->codec);
	size_t block = scaled ? q->block : DL_QUANT_BLOCK_MAX;

	for (size_t i = 0; i < n; i += block) {
		uint16_t scale = dl_quant_kernels()->chance[q->codec](key,
			at + i, x + i, n - i < block ? n - i : block,
			codes + dl_codec_bytes(q->codec, i));

		if (scaled)
			dl_put_le16(scales + 2 * (i / block), scale);
	}
}

void dl_quant_encode(const struct dl_quant *q, uint64_t key, uint64_t at,
	const float *x, size_t n, void *codes, void *scales)
{
	if (q->stochastic && q->codec != DL_CODEC_F32)
		encode_by_chance(q, key, at, x, n, codes, scales);
	else if (!dl_codec_is_scaled(q->codec))
		dl_from_f32(codes, x, dl_codec_dtype(q->codec), n);
	else
		encode_nearest(q, x, n, codes, scales);
}

/* The n values, fewer than LANES, at the end of a run. */
static void decode_rest(enum dl_codec c, uint32_t block,
	const unsigned char *codes, const unsigned char *scales, size_t n,
	float rest[LANES])
{
	unsigned char part[LANES] = {0};

	memcpy(part, codes, dl_codec_bytes(c, n));
	dl_quant_kernels()->decode[c](part, scales, LANES, block, rest);
}

void dl_quant_decode(enum dl_codec c, uint32_t block, const void *codes,
	const void *scales, size_t n, float *out)
{
	const unsigned char *code = codes, *scale = scales;
	size_t whole = n / LANES * LANES;
	float rest[LANES];

	if (!dl_codec_is_scaled(c)) {
		dl_to_f32(out, codes, dl_codec_dtype(c), n);
		return;
	}
	dl_quant_kernels()->decode[c](code, scale, whole, block, out);
	if (whole == n)
		return;
	decode_rest(c, block, code + dl_codec_bytes(c, whole),
		scale + 2 * (whole / block), n - whole, rest);
	memcpy(out + whole, rest, (n - whole) * sizeof *out);
}

int dl_codes_alike(const struct dl_codes *a, const struct dl_codes *b)
{
	return a->codec == b->codec &&
	       (!dl_codec_is_scaled(a->codec) || a->block == b->block);
}

const float *dl_codes_values(const struct dl_codes *c, size_t n, float *scratch)
{
	if (c->codec == DL_CODEC_F32 &&
		(uintptr_t)c->codes % _Alignof(float) == 0)
		return c->codes;
	dl_quant_decode(c->codec, c->block, c->codes, c->scales, n, scratch);
	return scratch;
}

/* The same from element at on, which may lie inside a block if what is read
 * ends there. */
static struct dl_codes codes_from(const struct dl_codes *c, size_t at)
{
	struct dl_codes from = *c;

	from.codes =
		(const unsigned char *)c->codes + dl_codec_bytes(c->codec, at);
	if (dl_codec_is_scaled(c->codec))
		from.scales =
			(const unsigned char *)c->scales + 2 * (at / c->block);
	return from;
}

/* Of the last values, fewer than LANES. */
static double dot_rest(
	const struct dl_codes *x, const struct dl_codes *y, size_t n)
{
	float a[LANES], b[LANES];
	double sum = 0;

	dl_quant_decode(x->codec, x->block, x->codes, x->scales, n, a);
	dl_quant_decode(y->codec, y->block, y->codes, y->scales, n, b);
	for (size_t i = 0; i < n; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

/* No code makes an infinite value of these scales. */
static int are_bounded(const struct dl_codes *c, size_t n)
{
	const unsigned char *scale = c->scales;
	uint64_t scales = dl_codec_scales(c->codec, c->block, n);
	uint16_t most = 0;

	for (uint64_t i = 0; i < scales; i++) {
		uint16_t s = dl_le16(scale + 2 * i) & 0x7fff;

		most = s > most ? s : most;
	}
	return quant_limit(c->codec, most) == most;
}

/* Adds what comes from element at on, where a block begins. */
static double add_dot(double sum, const struct dl_codes *x,
	const struct dl_codes *y, size_t at, size_t n)
{
	size_t whole = n / LANES * LANES;
	struct dl_codes a = codes_from(x, at), b = codes_from(y, at);

	sum += dl_quant_kernels()->dot_int4(&a, &b, whole - at);
	if (whole == n)
		return sum;
	a = codes_from(x, whole);
	b = codes_from(y, whole);
	return sum + dot_rest(&a, &b, n - whole);
}

int dl_quant_dot(const struct dl_codes *x, const struct dl_codes *y, size_t n,
	double *product)
{
	if (x->codec != DL_CODEC_INT4 || !dl_codes_alike(x, y) ||
		!are_bounded(x, n) || !are_bounded(y, n))
		return -1;
	*product = add_dot(0, x, y, 0, n);
	return 0;
}

/* The values that gram_int4 can take. */
static size_t in_whole_blocks(const struct dl_codes *x, size_t n)
{
	return dl_quant_kernels()->gram_int4 && x->block % DL_QUANT_WHOLE == 0
		       ? n / x->block * x->block
		       : 0;
}

int dl_quant_gram(
	const struct dl_codes *x, size_t m, size_t n, double *products)
{
	size_t at;

	for (size_t j = 0; j < m; j++)
		if (x[j].codec != DL_CODEC_INT4 ||
			!dl_codes_alike(&x[0], &x[j]) || !are_bounded(&x[j], n))
			return -1;
	at = in_whole_blocks(x, n);
	memset(products, 0, m * (m + 1) / 2 * sizeof *products);
	if (at)
		dl_quant_kernels()->gram_int4(x, m, at, products);
	for (size_t i = 0; at < n && i < m; i++)
		for (size_t j = i; j < m; j++, products++)
			*products = add_dot(*products, &x[i], &x[j], at, n);
	return 0;
}

/* Adds values that are decoded before: so many of so many at a time that they
 * stay in the nearest cache. */
static void add_decoded(const struct dl_codes *from, const double *c, size_t m,
	size_t at, size_t n, int first, double *sum,
	const struct dl_beside *beside)
{
	enum { MANY = 16 };
	float x[MANY][AT_ONCE];
	struct dl_codes decoded[MANY];
	struct dl_beside there;

	if (beside)
		there = (struct dl_beside){beside->x + at, beside->y + at};
	for (size_t j = 0; j < m; j += MANY) {
		size_t k = 0;

		for (; k < MANY && j + k < m; k++) {
			struct dl_codes f = codes_from(&from[j + k], at);

			dl_quant_decode(
				f.codec, f.block, f.codes, f.scales, n, x[k]);
			decoded[k] = (struct dl_codes){.codes = x[k]};
		}
		dl_quant_kernels()->add[DL_CODEC_F32](sum + at, first && !j,
			c + j, decoded, k, n, beside ? &there : NULL);
	}
}

void dl_quant_add(const struct dl_codes *from, const double *c, size_t m,
	size_t n, int first, double *sum, const struct dl_beside *beside)
{
	size_t at = 0;

	if (!m) {
		for (; first && at < n; at++)
			sum[at] = -0.0;
		return;
	}
	if (dl_quant_kernels()->add[from->codec]) {
		at = dl_codec_is_scaled(from->codec) ? n / LANES * LANES : n;
		dl_quant_kernels()->add[from->codec](
			sum, first, c, from, m, at, beside);
	}
	for (size_t part; at < n; at += part) {
		part = n - at < AT_ONCE ? n - at : AT_ONCE;
		add_decoded(from, c, m, at, part, first, sum, beside);
	}
}
