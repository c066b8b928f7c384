/*
 * Products of int4 codes, of all pairs at once and of each, against whole
 * numbers summed one by one, at every level of the CPU.
 */
#include "base/rng.h"
#include "levels.h"
#include "tensor/quant.h"

#include <string.h>

enum { MOST = DL_QUANT_MANY, LONGEST = 4096 };

static unsigned char codes[MOST][LONGEST / 2], scales[MOST][LONGEST / 16 * 2];

/* Any codes, and scales that are bounded; those of 1 are the extreme one. */
static void init(void)
{
	struct dl_rng r = {1, 0};

	for (size_t j = 0; j < MOST; j++) {
		for (size_t i = 0; i < sizeof codes[j]; i++)
			codes[j][i] =
				j == 1 ? 0x88
				       : (unsigned char)dl_rng_below(&r, 256);
		for (size_t i = 0; i < sizeof scales[j]; i += 2)
			dl_put_le16(scales[j] + i,
				(uint16_t)(0x3000 | dl_rng_below(&r, 0x1000) |
					   dl_rng_below(&r, 2) << 15));
	}
}

static double dot(const float *x, const float *y, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)y[i];
	return sum;
}

/* What is exact in double: a sum a block, with both scales in it. Values after
 * the last multiple of 16 are added to a sum of their own. */
static double plain(uint32_t block, size_t a, size_t b, size_t n)
{
	static float x[LONGEST], y[LONGEST];
	size_t whole = n / 16 * 16, step;
	double sum = 0;

	dl_quant_decode(DL_CODEC_INT4, block, codes[a], scales[a], n, x);
	dl_quant_decode(DL_CODEC_INT4, block, codes[b], scales[b], n, y);
	for (size_t i = 0; i < whole; i += step) {
		step = whole - i < block ? whole - i : block;
		sum += dot(x + i, y + i, step);
	}
	return n > whole ? sum + dot(x + whole, y + whole, n - whole) : sum;
}

/* Do all of m, and each pair, have the bits of the plain sums? */
static int multiplies(uint32_t block, size_t m, size_t n)
{
	struct dl_codes x[MOST];
	double all[MOST * (MOST + 1) / 2 + 1], *sum = all, one;
	int same = 1;

	for (size_t j = 0; j < m; j++)
		x[j] = (struct dl_codes){
			DL_CODEC_INT4, block, codes[j], scales[j]};
	all[m * (m + 1) / 2] = 99;
	if (dl_quant_gram(x, m, n, all))
		return 0;
	for (size_t i = 0; i < m; i++)
		for (size_t j = i; j < m; j++, sum++) {
			double want = plain(block, i, j, n);

			same &= !memcmp(sum, &want, sizeof want) &&
				!dl_quant_dot(&x[i], &x[j], n, &one) &&
				!memcmp(&one, &want, sizeof want);
		}
	return same && *sum == 99;
}

static void test_block(uint32_t block)
{
	static const size_t lengths[] = {0, 1, 15, 16, 17, 127, 128, 130, 255,
		400, 1024, 1025, 1170, LONGEST - 1, LONGEST};

	for (size_t m = 1; m <= MOST; m++) {
		int same = 1;

		for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
			same &= multiplies(block, m, lengths[i]);
		ok(same, "%zu in blocks of %u: the plain sums", m,
			(unsigned)block);
	}
}

static void test_refused(void)
{
	struct dl_codes x[2] = {{DL_CODEC_INT4, 128, codes[0], scales[0]},
		{DL_CODEC_INT4, 64, codes[1], scales[1]}};
	double sum[3];

	ok(dl_quant_gram(x, 2, 256, sum) && dl_quant_dot(x, x + 1, 256, sum),
		"blocks of another size");
	x[1] = (struct dl_codes){DL_CODEC_INT8, 128, codes[1], scales[1]};
	ok(dl_quant_gram(x, 2, 256, sum) && dl_quant_dot(x, x + 1, 256, sum),
		"another codec");
	x[1] = (struct dl_codes){DL_CODEC_INT4, 128, codes[1], scales[1]};
	dl_put_le16(scales[1], 0x7f7f);
	ok(dl_quant_gram(x, 2, 256, sum) && dl_quant_dot(x, x + 1, 256, sum),
		"a scale that makes infinite values");
}

int main(int argc, char **argv)
{
	if (at_all_levels(argc, argv))
		return done_testing();
	init();
	for (uint32_t b = DL_QUANT_BLOCK_MIN; b <= DL_QUANT_BLOCK_MAX; b *= 2)
		test_block(b);
	test_refused();
	return done_testing();
}
