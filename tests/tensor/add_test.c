/*
 * Sums of what codes stand for, against a plain loop over decoded values, at
 * every level of the CPU.
 */
#include "base/rng.h"
#include "levels.h"
#include "tensor/quant.h"

#include <string.h>

enum { MOST = 19, LONGEST = 3000 };

/* The same for all: any codes, also those that no encoder makes, and scales of
 * any size that is finite. */
static unsigned char codes[MOST][4 * LONGEST],
	scales[MOST][LONGEST / 16 * 2 + 2];
static double by[MOST], before[LONGEST];

static void init(int odd)
{
	/* 0, -0, a negative one, and some that make infinite values. */
	static const uint16_t odd_scales[] = {
		0, 0x8000, 0xbf80, 0x7e80, 0x7f7f, 0xff7f};
	struct dl_rng r = {1, 0};

	for (size_t j = 0; j < MOST; j++) {
		by[j] = dl_rng_normal(&r);
		for (size_t i = 0; i < sizeof codes[j]; i++)
			codes[j][i] = (unsigned char)dl_rng_below(&r, 256);
		for (size_t i = 0; i < sizeof scales[j]; i += 2)
			dl_put_le16(scales[j] + i,
				(uint16_t)(dl_rng_below(&r, 200) << 7 |
					   dl_rng_below(&r, 0x80)));
		for (size_t i = 2 * j; odd && i < sizeof scales[j]; i += 26)
			dl_put_le16(scales[j] + i, odd_scales[i / 2 % 6]);
		/* Of f32, f16 and bf16 no exponent is that of infinity. */
		for (size_t i = 0; i < sizeof codes[j]; i += 2)
			codes[j][i + 1] &= 0xbb;
	}
	for (size_t i = 0; i < LONGEST; i++)
		before[i] = i % 3 ? dl_rng_normal(&r) : -0.0;
}

/* Does the sum of m deltas of n values have the bits of the plain one? */
static int adds(
	enum dl_codec codec, uint32_t block, size_t m, size_t n, int first)
{
	struct dl_codes from[MOST];
	double sum[LONGEST + 1], want[LONGEST];
	float x[LONGEST];

	memcpy(sum, before, sizeof before);
	memcpy(want, before, sizeof before);
	for (size_t i = 0; first && i < n; i++)
		want[i] = -0.0;
	sum[n] = 99;
	for (size_t j = 0; j < m; j++) {
		from[j] = (struct dl_codes){codec, block, codes[j], scales[j]};
		dl_quant_decode(codec, block, codes[j], scales[j], n, x);
		for (size_t i = 0; i < n; i++)
			want[i] += by[j] * (double)x[i];
	}
	dl_quant_add(from, by, m, n, first, sum, &(struct dl_beside){x, x});
	return !memcmp(sum, want, n * sizeof *sum) && sum[n] == 99;
}

static void test_codec(enum dl_codec codec, uint32_t block, const char *kind)
{
	static const size_t lengths[] = {
		0, 1, 15, 16, 17, 127, 128, 129, 255, 400, 1024, 1025, LONGEST};
	int same = 1;

	for (size_t m = 0; m <= MOST; m += m < 3 ? 1 : 8)
		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
			same &= adds(codec, block, m, lengths[i], 0) &&
				adds(codec, block, m, lengths[i], 1);
	ok(same, "%s, blocks of %u%s: the plain sum", dl_codec_name(codec),
		(unsigned)block, kind);
}

static void test_all(int odd)
{
	init(odd);
	for (int i = 0; i < DL_CODECS; i++)
		for (uint32_t b = DL_QUANT_BLOCK_MIN; b <= DL_QUANT_BLOCK_MAX;
			b *= dl_codec_is_scaled((enum dl_codec)i) ? 2 : 64)
			test_codec(
				(enum dl_codec)i, b, odd ? ", odd scales" : "");
}

int main(int argc, char **argv)
{
	if (at_all_levels(argc, argv))
		return done_testing();
	test_all(0);
	test_all(1);
	return done_testing();
}
