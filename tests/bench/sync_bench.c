/*
 * The syncer's path, by a real one on loopback tcp and eight learners: one
 * synchronisation of a model beside bare sockets in the same pattern, and with
 * codes both ways beside f32; the sync latency of a fragment, from the last
 * byte of the last push to the first of what is made of it, beside the merge
 * alone and the bare sending; and the syncer's page faults a round, beside ten.
 * What is committed goes to memory (/dev/shm), as f32 whatever the codec; so
 * once more with --commit of ten times the fragments.
 */
#include "base/mem.h"
#include "bench.h"
#include "crew.h"
#include "merge/gram.h"
#include "merge/step.h"
#include "raw.h"

#include <stdlib.h>

enum { CREW = 8, FRAGMENTS = 24, MANY = 240 };
static const size_t elements = ((size_t)256 << 20) / 4 / FRAGMENTS;
static const size_t one = 2500000; /* 10 MB */

struct sync {
	struct crew *f32, *int4, *loose, *alone;
	struct dl_pool *pool;
	struct dl_contribution from[CREW];
	float *delta, *theta, *momentum;
	double products[CREW * CREW];
	long faults;
};

static void sync_f32(void *ctx)
{
	struct sync *s = ctx;

	bench_took(crew_sync(s->f32));
}

static void sync_int4(void *ctx)
{
	struct sync *s = ctx;

	bench_took(crew_sync(s->int4));
}

static void sync_loose(void *ctx)
{
	struct sync *s = ctx;

	bench_took(crew_sync(s->loose));
}

static void sync_raw(void *ctx)
{
	(void)ctx;
	bench_took(raw_sync(CREW, FRAGMENTS, elements * sizeof(float)));
}

static void latency(void *ctx)
{
	struct sync *s = ctx;

	crew_sync(s->alone);
	bench_took(crew_latency(s->alone));
}

/* One pass, and the bytes once through bare sockets: there and back again to
 * one learner, of which half counts. */
static void merge_and_send(void *ctx)
{
	const struct dl_segment segment = {0, one, DL_RDA};
	struct sync *s = ctx;
	const struct dl_step step = {.outer = {0.7f, 0.5f, 1},
		.theta = s->theta,
		.next = s->theta,
		.momentum = s->momentum};
	double from = bench_now();

	bench_need(!dl_merge_step(s->pool, &segment, 1, s->from, CREW,
			   s->products, &step, NULL),
		"merge");
	bench_took(
		bench_now() - from + raw_sync(1, 1, one * sizeof(float)) / 2);
}

static void init_merge(struct sync *s)
{
	static const char *const names[CREW] = {
		"a", "b", "c", "d", "e", "f", "g", "h"};
	const struct dl_segment segment = {0, one, DL_RDA};
	const struct dl_contribution *who[CREW];

	s->pool = dl_pool_new(0);
	s->delta = dl_big_alloc(CREW * one * sizeof(float));
	s->theta = dl_big_alloc(one * sizeof(float));
	s->momentum = dl_big_alloc(one * sizeof(float));
	for (size_t i = 0; i < CREW * one; i++)
		s->delta[i] = (float)(i % 1009) * 1e-6f - 5e-4f;
	for (size_t j = 0; j < CREW; j++) {
		s->from[j] = (struct dl_contribution){.name = names[j],
			.weight = 1,
			.scale = 1,
			.delta = s->delta + j * one};
		who[j] = &s->from[j];
	}
	dl_gram(s->pool, &segment, 1, who, CREW, 1, s->products);
}

static void release_merge(struct sync *s)
{
	dl_big_free(s->delta, CREW * one * sizeof(float));
	dl_big_free(s->theta, one * sizeof(float));
	dl_big_free(s->momentum, one * sizeof(float));
	dl_pool_free(s->pool);
}

/* What counts of these turns is no time: pages, or CPU in a second. */
static void faults(void *ctx)
{
	struct sync *s = ctx;
	long before = crew_cost(s->alone).faults;

	crew_sync(s->alone);
	bench_took(0.1 + (double)(crew_cost(s->alone).faults - before));
}

static void ten(void *ctx)
{
	(void)ctx;
	bench_took(10);
}

static void idle(void *ctx)
{
	const double seconds = 1;
	struct sync *s = ctx;
	double before = crew_cost(s->alone).cpu;

	crew_idle(s->alone, seconds);
	bench_took(1e-3 + (crew_cost(s->alone).cpu - before) / seconds);
}

static void hundredth(void *ctx)
{
	(void)ctx;
	bench_took(0.01);
}

static void twentieth(void *ctx)
{
	(void)ctx;
	bench_took(0.05);
}

static struct crew *start(unsigned learners, uint32_t fragments, size_t n,
	enum dl_codec codec, unsigned commit)
{
	return crew_new(
		&(struct crew_options){learners, fragments, n, codec, commit});
}

static void measure_whole(struct sync *s)
{
	const double bytes =
		2.0 * CREW * FRAGMENTS * (double)elements * sizeof(float);
	const struct bench b = {
		.unit = "GB/s", .amount = bytes * 1e-9, .turns = 5};

	s->f32 = start(CREW, FRAGMENTS, elements, DL_CODEC_F32, 0);
	bench_compare(&b, sync_f32, sync_raw, s,
		"sync 256 MiB x %d, beside sockets", CREW);
	s->int4 = start(CREW, FRAGMENTS, elements, DL_CODEC_INT4, 0);
	bench_compare(
		&b, sync_int4, sync_f32, s, "sync int4 both ways, beside f32");
	crew_free(s->int4);
	s->loose = start(CREW, FRAGMENTS, elements, DL_CODEC_F32, MANY);
	bench_compare(&b, sync_loose, sync_f32, s,
		"sync --commit %d, beside each merge", MANY);
	crew_free(s->f32);
	s->int4 = start(CREW, FRAGMENTS, elements, DL_CODEC_INT4, MANY);
	bench_compare(&b, sync_int4, sync_loose, s,
		"sync int4 both ways, --commit %d, beside f32", MANY);
	crew_free(s->int4);
	crew_free(s->loose);
}

static void measure_latency(struct sync *s)
{
	const struct bench b = {.unit = "1/s", .amount = 1, .turns = 15};

	init_merge(s);
	s->alone = start(CREW, 1, one, DL_CODEC_F32, 0);
	bench_compare(&b, latency, merge_and_send, s, "sync latency 10 MB x %d",
		CREW);
	bench_compare(&b, faults, ten, s, "page faults of a round, beside ten");
	crew_free(s->alone);
	s->alone = start(CREW, 1, one, DL_CODEC_F32, MANY);
	bench_compare(&b, latency, merge_and_send, s,
		"sync latency 10 MB x %d, --commit %d", CREW, MANY);
	crew_free(s->alone);
	release_merge(s);
}

static void measure_idle(struct sync *s, unsigned learners, bench_fn *limit)
{
	const struct bench b = {.unit = "a core", .amount = 1, .turns = 5};

	s->alone = start(learners, 1, 1000, DL_CODEC_F32, 0);
	bench_compare(
		&b, idle, limit, s, "idle syncers of %u learners", learners);
	crew_free(s->alone);
}

int main(void)
{
	struct sync s = {.pool = NULL};

	measure_whole(&s);
	measure_latency(&s);
	measure_idle(&s, 64, hundredth);
	measure_idle(&s, 256, twentieth);
	return 0;
}
