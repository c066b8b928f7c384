#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

const char *const fixture_name[FIXTURES] = {"normal", "same", "zero",
	"one zero", "scales", "cancel", "nearly cancel", "denormal", "huge"};

/* The longest is more than one thread takes alone when many contribute. */
static const size_t lengths[] = {
	0, 1, 2, 15, 16, 17, 31, 33, 4095, 4096, 4097, 40001, 8192};

static float element(enum fixture_kind kind, size_t j, struct dl_rng *r,
	struct dl_rng *common)
{
	double x = dl_rng_normal(r) * 0.01, y = dl_rng_normal(common) * 0.01;

	switch (kind) {
	case SAME:
		return (float)y;
	case ZERO:
		return 0;
	case ONE_ZERO:
		return j ? (float)x : 0;
	case SCALES:
		return (float)(x * pow(100, (double)j));
	case CANCEL:
		return j % 2 ? (float)-y : (float)y;
	case NEARLY:
		return (float)((j % 2 ? -y : y) + x * 0.005);
	case DENORMAL:
		return (float)(x * 0x1p-130);
	case VAST:
		return (float)(x * 0x1p+126);
	default:
		return (float)x;
	}
}

static void cut(struct fixture *f)
{
	size_t count = sizeof lengths / sizeof *lengths;

	/* Every length as rda, and a few of each other rule. */
	for (size_t i = 0; i < count + 5; i++) {
		struct dl_segment *s = &f->segments[f->nsegments++];

		s->offset = f->n;
		s->n = i < count ? lengths[i] : 5000 + i;
		s->rule = i < count ? DL_RDA : (enum dl_rule)(i - count);
		f->n += s->n;
	}
}

void fixture_init(
	struct fixture *f, enum fixture_kind kind, size_t m, uint64_t seed)
{
	*f = (struct fixture){.m = m};
	cut(f);
	for (size_t j = 0; j < m; j++) {
		struct dl_rng r = {dl_rng_key(seed, j), 0};
		struct dl_rng common = {dl_rng_key(seed, FIXTURE_MOST), 0};
		struct dl_contribution *c = &f->from[j];
		uint64_t steps = 1 + dl_rng_below(&r, 24);

		if (kind == CANCEL || kind == NEARLY)
			steps = 1 + j / 2;
		f->delta[j] = dl_alloc_array(f->n, sizeof(float));
		for (size_t i = 0; i < f->n; i++)
			f->delta[j][i] = element(kind, j, &r, &common);
		snprintf(f->name[j], sizeof f->name[j], "learner%zu", j);
		c->name = f->name[j];
		c->weight = dl_merge_weight(768 * steps, steps);
		c->scale = j % 3 == 2 && kind != CANCEL ? 0.3 : 1;
		c->delta = f->delta[j];
	}
}

enum { BLOCK = 64 };

static int find_codes(
	const void *ctx, size_t offset, size_t n, struct dl_codes *out)
{
	const struct fixture_codes *c = ctx;
	const struct dl_segment *s = c->of->segments;
	size_t at, segment = 0;

	(void)n;
	while (offset >= s->offset + s->n)
		s++, segment++;
	at = offset - s->offset;
	if (dl_codec_is_scaled(c->codec) && at % BLOCK)
		return -1;
	*out = (struct dl_codes){c->codec, BLOCK,
		c->codes + sizeof(float) * s->offset +
			dl_codec_bytes(c->codec, at),
		c->scales + 2 * (s->offset / BLOCK + segment + at / BLOCK)};
	return 0;
}

static void read_codes(const void *ctx, size_t offset, size_t n, float *out)
{
	struct dl_codes c;

	find_codes(ctx, offset, n, &c);
	dl_quant_decode(c.codec, c.block, c.codes, c.scales, n, out);
}

void fixture_encode(struct fixture *f, size_t j, enum dl_codec codec)
{
	const struct dl_quant q = {.codec = codec, .block = BLOCK};
	struct fixture_codes *c = &f->codes[j];

	*c = (struct fixture_codes){f, codec,
		dl_alloc(sizeof(float) * f->n + 1),
		dl_alloc(2 * (f->n / BLOCK + f->nsegments + 1))};
	for (size_t k = 0; k < f->nsegments; k++) {
		const struct dl_segment *s = &f->segments[k];
		float *x = f->delta[j] + s->offset;
		struct dl_codes at;

		if (!s->n)
			continue;
		find_codes(c, s->offset, s->n, &at);
		dl_quant_encode(
			&q, 0, 0, x, s->n, (void *)at.codes, (void *)at.scales);
		read_codes(c, s->offset, s->n, x);
	}
	f->from[j].delta = NULL;
	f->from[j].read = read_codes;
	f->from[j].codes = find_codes;
	f->from[j].ctx = c;
}

void fixture_encode_all(struct fixture *f)
{
	static const enum dl_codec codecs[] = {DL_CODEC_F32, DL_CODEC_INT4,
		DL_CODEC_INT4, DL_CODEC_BF16, DL_CODEC_INT8, DL_CODEC_INT4,
		DL_CODEC_INT1, DL_CODEC_INT8};

	for (size_t j = 0; j < f->m; j++)
		fixture_encode(f, j, codecs[j % 8]);
}

struct dl_codes fixture_find(
	const struct fixture *f, size_t j, size_t offset, size_t n)
{
	struct dl_codes c = {.codes = f->delta[j] + offset};

	if (f->from[j].codes)
		find_codes(f->from[j].ctx, offset, n, &c);
	return c;
}

void fixture_release(struct fixture *f)
{
	for (size_t j = 0; j < f->m; j++) {
		free(f->delta[j]);
		free(f->codes[j].codes);
		free(f->codes[j].scales);
	}
}
