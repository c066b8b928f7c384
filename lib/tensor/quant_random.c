#include "tensor/quant_random.h"

#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "tensor/quant_bits.h"
#include "tensor/quant_kernels.h"

/* [0, 1) for element i, from half of 64 random bits. */
static float draw(uint64_t key, uint64_t i)
{
	uint64_t bits = dl_rng_at(key, i / 2);

	return (float)(uint32_t)(i % 2 ? bits >> 40 : bits >> 8 & 0xffffff) *
	       0x1p-24f;
}

/* Rounded up, so that no value is above the largest code. */
static uint16_t fit(enum dl_codec c, const float *x, size_t n)
{
	uint32_t most = 0, u;

	for (size_t i = 0; i < n; i++)
		if (quant_magnitude(x[i]) > most)
			most = quant_magnitude(x[i]);
	if (!most)
		return 0;
	u = (quant_bits(quant_float(most) / quant_top(c)) + 0xffff) >> 16;
	return quant_limit(c, u < 0x80 ? 0x80 : u);
}

static int integer(float y, int top, float u)
{
	float low = floorf(y);
	int k = (int)low + (y - low > u);

	return k > top ? top : k < -top ? -top : k;
}

static int power(float y, float u)
{
	float m = fabsf(y), low;
	int k;

	if (m < 0x1p-6f) {
		k = m * 0x1p6f > u;
	} else {
		k = (int)(quant_bits(m) >> 23) - 120;
		low = quant_float((uint32_t)(k + 120) << 23);
		k += (m - low) / low > u;
	}
	k = k > 7 ? 7 : k;
	return k && y < 0 ? k | 8 : k;
}

static int code_of(enum dl_codec c, float y, float u)
{
	switch (c) {
	case DL_CODEC_INT8:
		return integer(y, 127, u);
	case DL_CODEC_INT4:
		return integer(y, 7, u);
	case DL_CODEC_FP4:
		return power(y, u);
	case DL_CODEC_INT2:
		return integer(y, 1, u);
	default:
		return !(0.5f + y / 2 > u);
	}
}

uint16_t quant_random(enum dl_codec c, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *codes)
{
	unsigned char code[DL_QUANT_BLOCK_MAX] = {0};
	unsigned char part[DL_QUANT_BLOCK_MAX];
	uint16_t scale = fit(c, x, n);

	if (scale)
		for (size_t i = 0; i < n; i++)
			code[i] = (unsigned char)code_of(c,
				x[i] / quant_scale(scale), draw(key, at + i));
	dl_quant_kernels()->pack(c, code, (n + 7) / 8 * 8, part);
	memcpy(codes, part, dl_codec_bytes(c, n));
	return scale;
}

static float widen(enum dl_dtype t, uint16_t bits)
{
	unsigned char raw[2];
	float v;

	dl_put_le16(raw, bits);
	dl_to_f32(&v, raw, t, 1);
	return v;
}

/* The nearest, or by chance the neighbour on the other side of x. */
static uint16_t narrow(enum dl_dtype t, float x, float u)
{
	unsigned char raw[2];
	uint16_t bits, other;
	double v, w;

	dl_from_f32(raw, &x, t, 1);
	bits = dl_le16(raw);
	v = (double)widen(t, bits);
	other = (uint16_t)(fabs(v) < fabs((double)x) ? bits + 1 : bits - 1);
	w = (double)widen(t, other);
	if (v == (double)x || !isfinite(v) || !isfinite(w))
		return bits;
	return ((double)x - v) / (w - v) > (double)u ? other : bits;
}

void quant_random_narrow(enum dl_dtype t, uint64_t key, uint64_t at,
	const float *x, size_t n, unsigned char *out)
{
	for (size_t i = 0; i < n; i++)
		dl_put_le16(out + 2 * i, narrow(t, x[i], draw(key, at + i)));
}
