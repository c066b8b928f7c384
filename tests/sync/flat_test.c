/*
 * What a merge costs does not depend on how many there were: allocations,
 * system calls and bytes written, of what dl-sync serve does between two rounds
 * (core, tape, globals, store). DL_FLAT_MERGES is how many there are in
 * between.
 */
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/rng.h"
#include "cmd/sync/globals.h"
#include "cmd/sync/start.h"
#include "tally.h"
#include "tests/tap.h"

static const char layout_text[] = "# name\tdtype\tshape\telements\tfragment\t"
				  "rule\n# format\t1\n"
				  "a\tF32\t256\t256\t0\trda\n"
				  "b\tF32\t256\t256\t1\trda\n";
enum { P = 2, ELEMENTS = 256, LEARNERS = 3, STRETCH = 100 };

static const char *const names[LEARNERS] = {"ann", "ben", "cyd"};
static const enum dl_codec codecs[LEARNERS] = {
	DL_CODEC_F32, DL_CODEC_INT4, DL_CODEC_BF16};

static struct dl_layout layout;

struct run {
	struct globals g;
	struct dl_sync *core;
	struct dl_tape *tape;
	struct dl_trail trail;
	struct dl_rng rng;
	int64_t now;
	uint64_t step;
	int merged[P];
	uint64_t merges;
};

static void must(int rc, const struct dl_err *e, const char *what)
{
	if (!rc)
		return;
	printf("Bail out! %s: %d %s\n", what, rc, e->text);
	fflush(stdout);
	_exit(1);
}

static void act(struct run *r, const struct dl_sync_action *a)
{
	struct dl_err e;

	dl_trail_add(&r->trail, a);
	if (a->kind == DL_ACT_MERGE) {
		must(globals_merge(&r->g, a, &e), &e, "merge");
		r->merged[a->fragment] = 1;
	}
	if (a->kind == DL_ACT_RELEASE)
		pushes_drop_id(&r->g.pushes, a->push);
}

static void feed(struct run *r, struct dl_sync_event *ev)
{
	struct dl_sync_action a;

	ev->now = r->now += 1000000;
	sync_note(r->tape, ev, &r->g, &r->trail, ev->now);
	dl_sync_event(r->core, ev);
	while (dl_sync_next(r->core, &a))
		act(r, &a);
}

static void commit(struct run *r, uint32_t p)
{
	struct dl_sync_event ev = {.kind = DL_EV_MERGED,
		.fragment = p,
		.version = dl_sync_version(r->core, p),
		.loss = NAN};
	struct dl_sync_saved saved;
	struct dl_err e;

	must(dl_tape_sync(r->tape, &e), &e, "tape");
	dl_sync_save(r->core, p, &saved);
	must(globals_commit(&r->g, p, &saved, &e), &e, "commit");
	dl_sync_saved_release(&saved);
	r->merged[p] = 0;
	r->merges++;
	ev.version.number++;
	feed(r, &ev);
}

static uint64_t take_push(struct run *r, uint32_t p, enum dl_codec codec)
{
	const struct dl_quant q = {.codec = codec, .block = DL_QUANT_BLOCK};
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf b = DL_BUF_INIT;
	float delta[ELEMENTS];
	struct dl_header h;
	struct push *push;
	struct dl_err e;

	for (size_t i = 0; i < ELEMENTS; i++)
		delta[i] = 1e-3f * (float)(dl_rng_uniform(&r->rng) - 0.5);
	if (codec == DL_CODEC_F32)
		dl_layout_record(&layout, p, &w);
	else
		dl_coded_record(&layout, p, &q, &w);
	dl_writer_finish(&w, &b, NULL);
	dl_writer_release(&w);
	must(dl_header_parse(&h, b.data + 8, b.len - 8, &e), &e, "header");
	dl_buf_free(&b);
	must(pushes_begin(&r->g.pushes, p, &h, &push, &e), &e, "push");
	dl_header_release(&h);
	if (codec == DL_CODEC_F32)
		memcpy(push->data, delta, push->size);
	else
		dl_coded_encode(NULL, &layout, p, &q, delta, push->data);
	pushes_arrived(&r->g.pushes, push);
	return push->id;
}

/* Everybody makes a step, and pushes the fragment that is due at it. */
static void make_round(struct run *r)
{
	uint32_t p = (uint32_t)(++r->step % P);
	struct dl_sync_event ev = {.fragment = p,
		.clock = r->step,
		.steps = r->step,
		.tokens = 8 * r->step,
		.step = r->step,
		.loss = 2};

	for (unsigned i = 0; i < LEARNERS; i++) {
		ev.kind = DL_EV_STEP;
		ev.learner = names[i];
		ev.instance = i + 1;
		feed(r, &ev);
	}
	ev.seq = r->step;
	ev.steps = 1;
	ev.tokens = 8;
	ev.base = dl_sync_version(r->core, p);
	for (unsigned i = 0; i < LEARNERS; i++) {
		ev.kind = DL_EV_PUSH;
		ev.learner = names[i];
		ev.instance = i + 1;
		ev.push = take_push(r, p, codecs[i]);
		ev.norm = r->g.pushes.first[p]->norm;
		feed(r, &ev);
	}
	if (r->merged[p])
		commit(r, p);
	ev.kind = DL_EV_APPLIED;
	ev.version = dl_sync_version(r->core, p);
	for (unsigned i = 0; i < LEARNERS; i++) {
		ev.learner = names[i];
		ev.instance = i + 1;
		feed(r, &ev);
	}
}

static void begin(struct run *r, const char *folder, enum dl_codec codec)
{
	const struct dl_store_run run = {"demo", P};
	struct sync_options o = {.store = folder,
		.global = codec,
		.rule = DL_RDA,
		.outer = {0.7f, 0.5f, 1},
		.min_h_given = 1,
		.threads = 1};
	static const float zeros[ELEMENTS];
	const float *values[P] = {zeros, zeros};
	static const struct dl_version none[P] = {{0, 0}};
	char *path = dl_sprintf("%s/tape", folder);
	struct dl_tape_start start;
	struct dl_sync_saved saved;
	struct dl_err e;

	*r = (struct run){.rng = {dl_rng_key(5, 5), 0}};
	dl_sync_config_default(&o.config, P);
	o.config.grace = DL_GRACE_NONE;
	o.config.quorum = LEARNERS;
	o.config.min_h = 0;
	r->core = dl_sync_new(&o.config);
	dl_sync_save(r->core, UINT32_MAX, &saved);
	must(dl_store_create(folder, &run, &layout, &saved, values, &e), &e,
		"create");
	dl_sync_saved_release(&saved);
	dl_sync_free(r->core);
	must(globals_open(&r->g, &o, &e), &e, "open");
	sync_start(&start, &o, r->g.store);
	must(dl_tape_open(&r->tape, path, &start, 0, 0, &e), &e, "tape");
	free(path);
	dl_trail_init(&r->trail);
	r->core = dl_sync_new(&start.config);
	for (unsigned i = 0; i < LEARNERS; i++)
		feed(r, &(struct dl_sync_event){.kind = DL_EV_JOIN,
				.learner = names[i],
				.instance = i + 1,
				.versions = none});
}

static void end(struct run *r)
{
	struct dl_err e;

	must(dl_tape_close(r->tape, &e), &e, "close");
	dl_sync_free(r->core);
	globals_close(&r->g);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Rounds until there were so many merges; microseconds of each. */
static double rounds_to(struct run *r, uint64_t merges)
{
	double from = seconds();
	uint64_t n = merges - r->merges;

	while (r->merges < merges)
		make_round(r);
	return 1e6 * (seconds() - from) / (double)n;
}

static struct tally stretch(struct run *r)
{
	uint64_t merges = r->merges + STRETCH;
	struct tally t;

	tally_begin();
	while (r->merges < merges)
		make_round(r);
	tally_end(&t);
	return t;
}

static void show(uint64_t merges, const struct tally *t, double us)
{
	printf("# after %llu merges, each: %.2f allocations, %.2f system "
	       "calls, "
	       "%.1f bytes written, %.0f us\n",
		(unsigned long long)merges, (double)t->allocations / STRETCH,
		(double)t->calls / STRETCH, (double)t->written / STRETCH, us);
}

static uint64_t many(void)
{
	const char *text = getenv("DL_FLAT_MERGES");
	uint64_t n = 2000;

	if (text && dl_parse_u64(text, 2000, 1 << 30, &n))
		n = 2000;
	return n;
}

/* The same, but for a share of it. */
static int about(uint64_t first, uint64_t last, double share)
{
	return first &&
	       fabs((double)last - (double)first) <= share * (double)first;
}

static void check(
	const char *what, const char *folder, enum dl_codec codec, int traced)
{
	uint64_t few = 1000, all = many();
	struct tally first, last;
	struct run r;
	double us;

	begin(&r, folder, codec);
	rounds_to(&r, 500);
	us = rounds_to(&r, few);
	first = stretch(&r);
	show(few, &first, us);
	rounds_to(&r, all - 500);
	us = rounds_to(&r, all);
	last = stretch(&r);
	show(all, &last, us);
	end(&r);
	ok(first.allocations == last.allocations && first.allocations,
		"%s: as many allocations", what);
	ok(!first.kept && !last.kept, "%s: none of them is kept", what);
	if (!traced) {
		skip("%s: system calls: no ptrace here", what);
		return;
	}
	/* A sanitizer's allocator turns to the system now and then. */
	ok(about(first.calls, last.calls, 0.01), "%s: as many system calls",
		what);
	/* Numbers get longer: a digit in each, at most, for ten times as many
	 * merges. */
	ok(about(first.written, last.written, 0.03), "%s: as many bytes", what);
}

static int test(int traced)
{
	char folder[] = "/dev/shm/dl-flat-XXXXXX",
	     other[] = "/tmp/dl-flat-XXXXXX";
	char *home = mkdtemp(folder) ? folder : mkdtemp(other);
	char *whole, *narrow, *command;
	struct dl_err e;

	if (!home)
		return 99;
	whole = dl_sprintf("%s/whole", home);
	narrow = dl_sprintf("%s/narrow", home);
	command = dl_sprintf("rm -rf '%s'", home);
	must(dl_layout_parse(&layout, layout_text, sizeof layout_text - 1, &e),
		&e, "layout");
	check("values", whole, DL_CODEC_F32, traced);
	check("updates", narrow, DL_CODEC_INT4, traced);
	if (system(command))
		return 99;
	dl_layout_release(&layout);
	free(whole);
	free(narrow);
	free(command);
	return done_testing();
}

int main(void)
{
	return tally_run(test);
}
