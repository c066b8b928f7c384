/*
 * The global parameters over many rounds: what learners hold is what the syncer
 * holds, whatever the codec, and a restart changes no bit of it.
 */
#include "cmd/sync/globals.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/tap.h"

static const char layout_text[] = "# name\tdtype\tshape\telements\tfragment\t"
				  "rule\n# format\t1\n"
				  "a\tF32\t40x5\t200\t0\trda\n"
				  "b\tBF16\t77\t77\t0\tmean\n"
				  "n\tI32\t2\t2\t0\tlast\n"
				  "z\tF32\t300\t300\t1\trda\n";
enum { P = 2, MOST = 300, ROUNDS = 8 };

static struct dl_layout layout;
static char folder[] = "/tmp/dl-globals-XXXXXX";
static char *store;

/* A run: what would be a syncer, and what HEAD is to hold. */
struct run {
	struct globals g;
	struct dl_sync_saved saved;
	uint64_t rounds; /* made of each fragment */
	int durable;	 /* each is committed */
};

static void must(int rc, const struct dl_err *e, const char *what)
{
	if (!rc)
		return;
	printf("Bail out! %s: %d %s\n", what, rc, e->text);
	exit(1);
}

static void remove_store(void)
{
	char *command = dl_sprintf("rm -rf '%s'", store);

	if (system(command))
		exit(1);
	free(command);
}

static size_t elements(uint32_t p)
{
	return layout.fragment[p].elements;
}

/* The delta that push number i brings: small, and whole in integer tensors. */
static const float *delta_of(uint32_t p, uint64_t i)
{
	static float delta[MOST];
	struct dl_rng r = {dl_rng_key(7, 1000 * p + i), 0};

	for (size_t k = 0; k < elements(p); k++)
		delta[k] = (float)(0.01 * dl_rng_normal(&r));
	if (p == 0)
		delta[277] = 3, delta[278] = -1;
	return delta;
}

static void open_run(struct run *r, enum dl_codec codec)
{
	const struct sync_options o = {.store = store,
		.global = codec,
		.rule = DL_RDA,
		.outer = {0.7f, 0.5f, 1},
		.threads = 2};
	struct dl_err e;

	must(globals_open(&r->g, &o, &e), &e, "open");
}

static void begin(struct run *r, enum dl_codec codec)
{
	const struct dl_store_run run = {"demo", 24};
	float values[P][MOST];
	const float *v[P];
	struct dl_err e;

	remove_store();
	*r = (struct run){.saved = {.epoch = 1, .fragments = P}};
	r->saved.fragment = dl_alloc_array(P, sizeof *r->saved.fragment);
	for (uint32_t p = 0; p < P; p++) {
		r->saved.fragment[p].version = (struct dl_version){1, 0};
		v[p] = memcpy(values[p], delta_of(p, 999), sizeof values[p]);
	}
	must(dl_store_create(store, &run, &layout, &r->saved, v, &e), &e,
		"create");
	open_run(r, codec);
}

static void end(struct run *r)
{
	globals_close(&r->g);
	dl_sync_saved_release(&r->saved);
}

static void restart(struct run *r, enum dl_codec codec)
{
	globals_close(&r->g);
	open_run(r, codec);
}

/* The header of a push of fragment p in that codec. */
static void header_of(uint32_t p, const struct dl_quant *q, struct dl_header *h)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf b = DL_BUF_INIT;
	struct dl_err e;

	if (q->codec == DL_CODEC_F32)
		dl_layout_record(&layout, p, &w);
	else
		dl_coded_record(&layout, p, q, &w);
	dl_writer_finish(&w, &b, NULL);
	dl_writer_release(&w);
	must(dl_header_parse(h, b.data + 8, b.len - 8, &e), &e, "header");
	dl_buf_free(&b);
}

/* A push comes; its part of a merge. */
static struct dl_sync_part push(struct globals *g, const char *learner,
	uint32_t p, enum dl_codec codec, const float *delta)
{
	const struct dl_quant q = {.codec = codec, .block = DL_QUANT_BLOCK};
	struct dl_header h;
	struct push *push;
	struct dl_err e;

	header_of(p, &q, &h);
	must(pushes_begin(&g->pushes, p, &h, &push, &e), &e, "push");
	dl_header_release(&h);
	if (codec == DL_CODEC_F32)
		memcpy(push->data, delta, push->size);
	else
		dl_coded_encode(NULL, &layout, p, &q, delta, push->data);
	pushes_arrived(&g->pushes, push);
	return (struct dl_sync_part){learner, push->id, 1, 1};
}

/* One round of p, without its commit: two learners, of which one has pushed
 * twice, in several codecs. */
static void merge(struct run *r, uint32_t p)
{
	uint64_t n = r->rounds;
	struct dl_sync_part part[3] = {
		push(&r->g, "ann", p, DL_CODEC_INT4, delta_of(p, 3 * n)),
		push(&r->g, "ben", p, DL_CODEC_F32, delta_of(p, 3 * n + 1)),
		push(&r->g, "ben", p, DL_CODEC_BF16, delta_of(p, 3 * n + 2))};
	struct dl_sync_action a = {.kind = DL_ACT_MERGE,
		.fragment = p,
		.version = {1, n + 1},
		.part = part,
		.parts = 3};
	struct dl_err e;

	part[1].weight = part[2].weight = 3;
	part[2].scale = 0.5;
	must(globals_merge(&r->g, &a, &e), &e, "merge");
	for (int i = 0; i < 3; i++)
		pushes_drop_id(&r->g.pushes, part[i].push);
}

static void commit(struct run *r, uint32_t p)
{
	struct dl_err e;

	r->saved.fragment[p].version.number = r->rounds + 1;
	must(globals_commit(&r->g, p, &r->saved, &e), &e, "commit");
}

static void rounds(struct run *r, int n)
{
	for (; n--; r->rounds++)
		for (uint32_t p = 0; p < P; p++) {
			merge(r, p);
			if (r->durable)
				commit(r, p);
		}
}

/* What a learner makes of an update: its values move. */
static void follow(const struct globals *g, const struct update *update,
	uint32_t p, float *values)
{
	float step[MOST];
	struct dl_coded coded;

	dl_coded_init(&coded, &layout, p, &g->quant, update->data->data);
	dl_coded_read(&coded, 0, elements(p), step);
	dl_coded_release(&coded);
	for (size_t i = 0; i < elements(p); i++)
		values[i] += step[i];
}

static int same(const float *a, const float *b, uint32_t p)
{
	return !memcmp(a, b, elements(p) * sizeof *a);
}

static void test_followed(enum dl_codec codec)
{
	float held[P][MOST];
	int good = 0, based = 0;
	struct run r;

	begin(&r, codec);
	for (uint32_t p = 0; p < P; p++)
		memcpy(held[p], globals_values(&r.g, p),
			elements(p) * sizeof(float));
	for (; r.rounds < ROUNDS; r.rounds++)
		for (uint32_t p = 0; p < P; p++) {
			const struct dl_version next = {1, r.rounds + 1};
			const struct update *update;

			merge(&r, p);
			update = globals_update(&r.g, p, next);
			if (!update)
				continue;
			based += update->base.number == r.rounds &&
				 !globals_update(&r.g, p, update->base);
			follow(&r.g, update, p, held[p]);
			good += same(held[p], globals_values(&r.g, p), p);
		}
	ok(good == P * ROUNDS, "%s: a learner has the syncer's bits (%d)",
		dl_codec_name(codec), good);
	ok(based == P * ROUNDS, "%s: and knows from where",
		dl_codec_name(codec));
	end(&r);
}

/* How far apart two fragments are, in units of their largest step. */
static double apart(const float *a, const float *b, uint32_t p)
{
	double most = 0;

	for (size_t i = 0; i < elements(p); i++)
		most = fmax(most, fabs((double)a[i] - b[i]));
	return most;
}

static void add(float *sum, const float *x, uint32_t p)
{
	for (size_t i = 0; x && i < elements(p); i++)
		sum[i] += x[i];
}

/* r's values with what they owe are those of a run without a codec. */
static int owes_the_rest(const struct run *r, float whole[P][MOST])
{
	int good = 0;

	for (uint32_t p = 0; p < P; p++) {
		float sum[MOST];

		memcpy(sum, globals_values(&r->g, p),
			elements(p) * sizeof *sum);
		add(sum, r->g.error[p], p);
		good += apart(sum, whole[p], p) < 1e-5;
	}
	return good == P;
}

static void run_whole(int n, float whole[P][MOST])
{
	struct run r;

	begin(&r, DL_CODEC_F32);
	rounds(&r, n);
	for (uint32_t p = 0; p < P; p++)
		memcpy(whole[p], globals_values(&r.g, p),
			elements(p) * sizeof(float));
	end(&r);
}

static void test_nothing_lost(enum dl_codec codec)
{
	float whole[P][MOST];
	double off = 0, owed = 0;
	struct run r;

	run_whole(ROUNDS, whole);
	begin(&r, codec);
	rounds(&r, ROUNDS);
	for (uint32_t p = 0; p < P; p++) {
		float zero[MOST] = {0};

		off = fmax(off, apart(globals_values(&r.g, p), whole[p], p));
		owed = fmax(owed, apart(r.g.error[p], zero, p));
	}
	ok(owes_the_rest(&r, whole), "%s: what is lost is owed",
		dl_codec_name(codec));
	ok(off > 0 && off < owed + 1e-5,
		"%s: so after %d rounds values are off by one update's error "
		"(%g)",
		dl_codec_name(codec), ROUNDS, off);
	end(&r);
}

static void test_restarts(void)
{
	struct run r;
	struct {
		float values[MOST], momentum[MOST], error[MOST];
	} once[P];
	int good = 0;

	begin(&r, DL_CODEC_INT4);
	rounds(&r, ROUNDS);
	for (uint32_t p = 0; p < P; p++) {
		size_t size = elements(p) * sizeof(float);

		memcpy(once[p].values, globals_values(&r.g, p), size);
		memcpy(once[p].momentum, r.g.momentum[p], size);
		memcpy(once[p].error, r.g.error[p], size);
	}
	end(&r);
	begin(&r, DL_CODEC_INT4);
	r.durable = 1;
	for (int i = 0; i < ROUNDS; i++) {
		merge(&r, 1); /* in vain: it is not committed */
		restart(&r, DL_CODEC_INT4);
		rounds(&r, 1);
		restart(&r, DL_CODEC_INT4);
	}
	for (uint32_t p = 0; p < P; p++)
		good += same(once[p].values, globals_values(&r.g, p), p) &&
			same(once[p].momentum, r.g.momentum[p], p) &&
			same(once[p].error, r.g.error[p], p);
	ok(good == P, "restarts after every commit and every merge change "
		      "no bit of values, momentum and error");
	ok(!globals_update(&r.g, 0, (struct dl_version){1, ROUNDS}),
		"after a start there is no update: values go");
	end(&r);
}

static void test_other_codec(void)
{
	float whole[P][MOST];
	struct run r;
	int paid;

	run_whole(ROUNDS, whole);
	begin(&r, DL_CODEC_INT2);
	r.durable = 1;
	rounds(&r, ROUNDS / 2);
	restart(&r, DL_CODEC_INT8);
	ok(r.g.error[0] && r.g.error[1], "what is owed stays owed");
	rounds(&r, ROUNDS / 2);
	ok(owes_the_rest(&r, whole), "in another codec too");
	end(&r);
	begin(&r, DL_CODEC_INT2);
	r.durable = 1;
	rounds(&r, ROUNDS - 1);
	restart(&r, DL_CODEC_F32);
	ok(r.g.error[0] && !owes_the_rest(&r, whole), "and to a whole step");
	rounds(&r, 1);
	paid = !r.g.error[0] && !r.g.error[1] && owes_the_rest(&r, whole);
	restart(&r, DL_CODEC_F32);
	ok(paid && !r.g.error[0] && owes_the_rest(&r, whole),
		"which pays it all");
	end(&r);
}

/* A merge of one push of fragment 1. */
static void merge_one(struct run *r, enum dl_codec codec, const float *delta)
{
	struct dl_sync_part part = push(&r->g, "ann", 1, codec, delta);
	struct dl_sync_action a = {.kind = DL_ACT_MERGE,
		.fragment = 1,
		.version = {1, ++r->rounds},
		.part = &part,
		.parts = 1};
	struct dl_err e;

	must(globals_merge(&r->g, &a, &e), &e, "merge");
	pushes_drop_id(&r->g.pushes, part.push);
}

/* A push is what it decodes to. */
static void test_decoded(enum dl_codec codec)
{
	const struct dl_quant q = {.codec = codec, .block = DL_QUANT_BLOCK};
	float decoded[MOST], first[MOST];
	unsigned char data[4 * MOST];
	struct dl_coded coded;
	struct run r;

	dl_coded_encode(NULL, &layout, 1, &q, delta_of(1, 5), data);
	dl_coded_init(&coded, &layout, 1, &q, data);
	dl_coded_read(&coded, 0, elements(1), decoded);
	dl_coded_release(&coded);
	begin(&r, DL_CODEC_F32);
	merge_one(&r, codec, delta_of(1, 5));
	memcpy(first, globals_values(&r.g, 1), sizeof first);
	end(&r);
	begin(&r, DL_CODEC_F32);
	merge_one(&r, DL_CODEC_F32, decoded);
	ok(same(first, globals_values(&r.g, 1), 1),
		"%s: a push is merged as what it decodes to",
		dl_codec_name(codec));
	end(&r);
}

/* Steps that f16 cannot hold go as values. */
static void test_too_large(void)
{
	float delta[MOST], before[MOST];
	struct run r;
	int moved = 0;

	for (int i = 0; i < MOST; i++)
		delta[i] = i == 7 ? 1e30f : 0.01f;
	begin(&r, DL_CODEC_F16);
	memcpy(before, globals_values(&r.g, 1), sizeof before);
	merge_one(&r, DL_CODEC_F32, delta);
	for (int i = 0; i < MOST; i++)
		moved += isfinite(globals_values(&r.g, 1)[i]) &&
			 globals_values(&r.g, 1)[i] != before[i] &&
			 r.g.error[1][i] == 0;
	ok(moved == MOST && !globals_update(&r.g, 1, (struct dl_version){1, 1}),
		"a step too large for the codec is made, and goes as values");
	end(&r);
}

/* Readers of a version keep it while the next is made. */
static void test_readers(void)
{
	struct shared *values, *update;
	float before[MOST];
	unsigned char code;
	struct run r;

	begin(&r, DL_CODEC_INT4);
	merge_one(&r, DL_CODEC_F32, delta_of(1, 1));
	values = shared_read(r.g.values[1]);
	update = shared_read(r.g.update[1].data);
	memcpy(before, values->data, sizeof before);
	code = *(unsigned char *)update->data;
	merge_one(&r, DL_CODEC_F32, delta_of(1, 2));
	ok(same(values->data, before, 1) && r.g.values[1] != values &&
			*(unsigned char *)update->data == code &&
			r.g.update[1].data != update,
		"what is being sent stays as it is");
	shared_done(values);
	shared_done(update);
	end(&r);
}

static int refused(struct globals *g, const struct dl_quant *q, uint32_t as,
	const char *fact)
{
	struct dl_header h;
	struct push *push;
	struct dl_err e;
	int rc;

	header_of(0, q, &h);
	rc = pushes_begin(&g->pushes, as, &h, &push, &e);
	dl_header_release(&h);
	return ok(rc == DL_DATA && strstr(e.text, fact) && !g->pushes.first[as],
		"refused: %s", e.text);
}

static void test_bad_pushes(void)
{
	const struct dl_quant q = {.codec = DL_CODEC_INT4, .block = 64};
	const struct dl_quant odd = {.codec = DL_CODEC_INT4, .block = 63};
	struct dl_header h;
	struct push *push;
	struct run r;
	struct dl_err e;

	begin(&r, DL_CODEC_INT4);
	refused(&r.g, &q, 1, "missing");
	refused(&r.g, &odd, 0, "dl.block");
	header_of(0, &q, &h);
	must(pushes_begin(&r.g.pushes, 0, &h, &push, &e), &e, "push");
	dl_header_release(&h);
	memset(push->data, 0xff, push->size);
	pushes_arrived(&r.g.pushes, push);
	ok(!isfinite(push->norm), "scales that are NaN give no norm");
	pushes_drop(&r.g.pushes, push);
	end(&r);
}

int main(void)
{
	struct dl_err e;

	if (!mkdtemp(folder))
		return 99;
	store = dl_sprintf("%s/s", folder);
	must(dl_layout_parse(&layout, layout_text, strlen(layout_text), &e), &e,
		"layout");
	for (int c = DL_CODEC_F16; c < DL_CODECS; c++) {
		test_followed((enum dl_codec)c);
		test_nothing_lost((enum dl_codec)c);
		test_decoded((enum dl_codec)c);
	}
	test_restarts();
	test_other_codec();
	test_too_large();
	test_readers();
	test_bad_pushes();
	remove_store();
	rmdir(folder);
	free(store);
	dl_layout_release(&layout);
	return done_testing();
}
