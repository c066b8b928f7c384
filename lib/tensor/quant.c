#include "tensor/quant.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tensor/quant_bits.h"
#include "tensor/quant_kernels.h"
#include "tensor/quant_random.h"

enum { LANES = 16 };

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

/* A block's codes and scale. */
static uint16_t encode_block(const struct dl_quant *q, uint64_t key,
	uint64_t at, const float *x, size_t n, unsigned char *codes)
{
	size_t whole = (n + LANES - 1) / LANES * LANES;
	unsigned char part[DL_QUANT_BLOCK_MAX];
	float padded[DL_QUANT_BLOCK_MAX];
	uint16_t scale;

	if (q->stochastic)
		return quant_random(q->codec, key, at, x, n, codes);
	if (n == whole)
		return dl_quant_kernels()->encode[q->codec](x, n, codes);
	memset(padded, 0, sizeof padded);
	memcpy(padded, x, n * sizeof *x);
	scale = dl_quant_kernels()->encode[q->codec](padded, n, part);
	memcpy(codes, part, dl_codec_bytes(q->codec, n));
	return scale;
}

static void encode_plain(const struct dl_quant *q, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *out)
{
	enum dl_dtype t = dl_codec_dtype(q->codec);

	if (q->stochastic && t != DL_F32)
		quant_random_narrow(t, key, at, x, n, out);
	else
		dl_from_f32(out, x, t, n);
}

void dl_quant_encode(const struct dl_quant *q, uint64_t key, uint64_t at,
	const float *x, size_t n, void *codes, void *scales)
{
	unsigned char *code = codes, *scale = scales;
	size_t step = dl_codec_bytes(q->codec, q->block);

	if (!dl_codec_is_scaled(q->codec)) {
		encode_plain(q, key, at, x, n, codes);
		return;
	}
	for (size_t i = 0; i < n; i += q->block) {
		size_t part = n - i < q->block ? n - i : q->block;

		dl_put_le16(
			scale, encode_block(q, key, at + i, x + i, part, code));
		scale += 2;
		code += step;
	}
}

static void decode_block(enum dl_codec c, const unsigned char *codes,
	float scale, size_t n, float *out)
{
	size_t whole = n / LANES * LANES;
	unsigned char part[LANES] = {0};
	float rest[LANES];

	dl_quant_kernels()->decode[c](codes, scale, whole, out);
	if (n == whole)
		return;
	memcpy(part, codes + dl_codec_bytes(c, whole),
		dl_codec_bytes(c, n - whole));
	dl_quant_kernels()->decode[c](part, scale, LANES, rest);
	memcpy(out + whole, rest, (n - whole) * sizeof *out);
}

void dl_quant_decode(enum dl_codec c, uint32_t block, const void *codes,
	const void *scales, size_t n, float *out)
{
	const unsigned char *code = codes, *scale = scales;
	size_t step = dl_codec_bytes(c, block);

	if (!dl_codec_is_scaled(c)) {
		dl_to_f32(out, codes, dl_codec_dtype(c), n);
		return;
	}
	for (size_t i = 0; i < n; i += block) {
		size_t part = n - i < block ? n - i : block;

		decode_block(
			c, code, quant_scale(dl_le16(scale)), part, out + i);
		scale += 2;
		code += step;
	}
}
