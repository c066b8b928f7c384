/*
 * What the method's settings do to a model's quality: real training and real
 * merging, driven by the two cores in virtual time, in one process on one
 * thread. The same arguments give the same figures whatever the machine does
 * meanwhile, so settings can be compared at equal seeds.
 *
 *	quality LAYOUT MODEL DATA [name=value ...]
 *
 * prints one TSV line: the settings that were named, held-out loss, tokens,
 * participation, effective H, shares of own steps that were overwritten, late
 * or merged, and bits a value of pushes and of updates. push and global name
 * codecs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "learn/learn.h"
#include "merge/merge.h"
#include "merge/outer.h"
#include "sync/sync.h"
#include "tensor/coded.h"
#include "tensor/layout.h"
#include "train/blas.h"
#include "train/store.h"
#include "train/training.h"

enum { STEP_NS = 1000000000, LEARNERS_MAX = 64 };

struct settings {
	double learners, steps, batch, seed, jitter, slow;
	double lr, mu, nesterov, mean; /* mean=1: no RDA */
	double inner, decay, warmup, floor;
	double h, tau, quorum, gamma, grace, late, minh;
	double apply, alpha, wait; /* apply: 0 overwrite, 1 carry, 2 blend */
	double delay, transfer;    /* of a message, of a fragment; in steps */
	double push, global;       /* enum dl_codec */
};

static const struct {
	const char *name;
	size_t at;
	double value;
} known[] = {
#define SETTING(name, value) {#name, offsetof(struct settings, name), value}
	SETTING(learners, 4), SETTING(steps, 2000), SETTING(batch, 12),
	SETTING(seed, 1), SETTING(jitter, 0.1), SETTING(slow, 0),
	SETTING(lr, 1), SETTING(mu, 0), SETTING(nesterov, 1),
	SETTING(mean, 0), SETTING(inner, 3e-3), SETTING(decay, 0.1),
	SETTING(warmup, 100), SETTING(floor, 0.1), SETTING(h, 24),
	SETTING(tau, 2), SETTING(quorum, 1), SETTING(gamma, 0.9),
	SETTING(grace, 1), SETTING(late, 0), SETTING(minh, -1),
	SETTING(apply, 1), SETTING(alpha, 0.5), SETTING(wait, 0),
	SETTING(delay, 0.01), SETTING(transfer, 0.05),
	SETTING(push, DL_CODEC_F32), SETTING(global, DL_CODEC_F32),
};

struct push {
	float *delta;
	uint64_t handle;
	struct push *next;
};

struct learner {
	char name[16];
	struct dl_training training;
	struct dl_learn *core;
	float **anchor;   /* a fragment */
	float **incoming; /* newest global not applied, a fragment */
	double pace;
	struct dl_rng rng;
	int finished;
};

enum kind { BOUNDARY, TO_SYNCER, TO_LEARNER, WAKE };

struct event {
	enum kind kind;
	int64_t at;
	uint64_t serial;
	struct learner *learner;
	struct dl_sync_event sync;
	struct dl_learn_event learn;
	float *values; /* of a global; owned */
	struct event *next;
};

static struct settings set;
static struct dl_layout layout;
static struct dl_llama llama;
static struct dl_corpus corpus;
static struct dl_sync *syncer;
static struct learner learner[LEARNERS_MAX];
static struct event *queue;
static struct push *pushes;
static float **theta, **momentum, **owed;
static size_t *place; /* of a layout tensor in the flat array */
static int64_t now;
static uint64_t serial, handles;
static int done;

static void schedule(struct event *e)
{
	struct event **p = &queue;

	e->serial = ++serial;
	while (*p && ((*p)->at < e->at
			|| ((*p)->at == e->at && (*p)->serial < e->serial)))
		p = &(*p)->next;
	e->next = *p;
	*p = e;
}

static struct event *event(enum kind kind, double steps, struct learner *l)
{
	struct event *e = dl_alloc(sizeof *e);

	e->kind = kind;
	e->at = now + (int64_t)(steps * STEP_NS);
	e->learner = l;
	return e;
}

static size_t elements(uint32_t p)
{
	return layout.fragment[p].elements;
}

/* Calls for each tensor of p: its place in the packed and the flat array. */
#define FOR_TENSORS(p, t, flat) \
	for (size_t i_ = layout.fragment[p].first; \
		i_ < layout.fragment[p].first + layout.fragment[p].tensors \
		&& (t = &layout.tensor[i_], flat = place[i_], 1); i_++)

static void gather(uint32_t p, const float *flat, float *packed)
{
	const struct dl_layout_tensor *t;
	size_t at;

	FOR_TENSORS(p, t, at)
		memcpy(packed + t->offset, flat + at,
			t->elements * sizeof *flat);
}

/* flat = keep * flat + add * packed */
static void scatter(uint32_t p, const float *packed, float keep, float add,
	float *flat)
{
	const struct dl_layout_tensor *t;
	size_t at;

	FOR_TENSORS(p, t, at)
		for (size_t k = 0; k < t->elements; k++)
			flat[at + k] = keep * flat[at + k]
				+ add * packed[t->offset + k];
}

/* x becomes what it decodes to, after a way through that codec. */
static void through(double codec, uint32_t p, float *x)
{
	const struct dl_quant q = {
		.codec = (enum dl_codec)codec, .block = DL_QUANT_BLOCK};
	struct dl_coded coded;
	void *data;

	if (q.codec == DL_CODEC_F32)
		return;
	data = dl_alloc(dl_coded_bytes(&layout, p, &q));
	dl_coded_encode(NULL, &layout, p, &q, x, data);
	dl_coded_init(&coded, &layout, p, &q, data);
	dl_coded_decode(NULL, &coded, x);
	dl_coded_release(&coded);
	free(data);
}

/* Bits a value over that codec, scales included. */
static double bits(double codec)
{
	const struct dl_quant q = {
		.codec = (enum dl_codec)codec, .block = DL_QUANT_BLOCK};
	double bytes = 0, n = 0;

	for (uint32_t p = 0; p < layout.fragments; p++) {
		bytes += (double)dl_coded_bytes(&layout, p, &q);
		n += (double)elements(p);
	}
	return 8 * bytes / n;
}

static void push(struct learner *l, const struct dl_learn_action *a)
{
	struct event *e = event(TO_SYNCER, set.delay + set.transfer, l);
	size_t n = elements(a->fragment);
	struct push *push = dl_alloc(sizeof *push);
	float *anchor = l->anchor[a->fragment];

	push->delta = dl_alloc_array(n, sizeof *push->delta);
	push->handle = ++handles;
	push->next = pushes;
	pushes = push;
	gather(a->fragment, l->training.values, push->delta);
	for (size_t i = 0; i < n; i++)
		push->delta[i] -= anchor[i];
	through(set.push, a->fragment, push->delta);
	for (size_t i = 0; i < n; i++)
		anchor[i] += push->delta[i];
	e->sync = (struct dl_sync_event){
		.kind = DL_EV_PUSH,
		.learner = l->name,
		.instance = 1,
		.fragment = a->fragment,
		.seq = a->seq,
		.step = a->step,
		.base = a->base,
		.steps = a->steps,
		.tokens = a->tokens,
		.norm = dl_norm(NULL, push->delta, n),
		.push = push->handle,
	};
	schedule(e);
}

static void apply(struct learner *l, const struct dl_learn_action *a)
{
	uint32_t p = a->fragment;
	float *value = l->incoming[p], *anchor = l->anchor[p];
	float alpha = (float)a->alpha, *flat = l->training.values;
	size_t n = elements(p);

	if (a->apply == DL_APPLY_OVERWRITE) {
		scatter(p, value, 0, 1, flat);
	} else if (a->apply == DL_APPLY_CARRY) {
		float *difference = dl_alloc_array(n, sizeof *difference);

		for (size_t i = 0; i < n; i++)
			difference[i] = value[i] - anchor[i];
		scatter(p, difference, 1, 1, flat);
		free(difference);
	} else {
		scatter(p, value, alpha, 1 - alpha, flat);
		for (size_t i = 0; i < n; i++)
			value[i] = alpha * anchor[i] + (1 - alpha) * value[i];
	}
	free(anchor);
	l->anchor[p] = value;
	l->incoming[p] = NULL;
}

static struct event *message(struct learner *l, enum dl_sync_event_kind kind)
{
	struct event *e = event(TO_SYNCER, set.delay, l);

	e->sync = (struct dl_sync_event){
		.kind = kind, .learner = l->name, .instance = 1};
	return e;
}

static void load(struct learner *l)
{
	for (uint32_t p = 0; p < layout.fragments; p++) {
		l->anchor[p] = l->incoming[p];
		l->incoming[p] = NULL;
		scatter(p, l->anchor[p], 0, 1, l->training.values);
	}
}

static void go(struct learner *l)
{
	double time = l->pace
		* (1 + set.jitter * (2 * dl_rng_uniform(&l->rng) - 1));

	schedule(event(BOUNDARY, time, l));
}

static void obey(struct learner *l, const struct dl_learn_action *a)
{
	struct event *e;

	switch (a->kind) {
	case DL_LA_LOAD:
		load(l);
		break;
	case DL_LA_COPY:
		push(l, a);
		break;
	case DL_LA_APPLY:
		apply(l, a);
		break;
	case DL_LA_CLOCK:
		l->training.clock = a->clock;
		break;
	case DL_LA_GO:
		go(l);
		break;
	case DL_LA_STEP:
		e = message(l, DL_EV_STEP);
		e->sync.clock = a->clock;
		e->sync.steps = a->steps;
		e->sync.tokens = a->tokens;
		schedule(e);
		break;
	case DL_LA_APPLIED:
		e = message(l, DL_EV_APPLIED);
		e->sync.fragment = a->fragment;
		e->sync.version = a->version;
		schedule(e);
		break;
	case DL_LA_DRAINED:
		schedule(message(l, DL_EV_DRAINED));
		break;
	case DL_LA_FINISH:
		l->finished = 1;
		break;
	case DL_LA_IMPORT: /* nobody joins */
	case DL_LA_WANT:
	case DL_LA_EXPORT:
	case DL_LA_RESEND:
	case DL_LA_RELEASE:
		break;
	}
}

static void tell_learner(struct learner *l, const struct dl_learn_event *ev)
{
	struct dl_learn_action a;

	dl_learn_event(l->core, ev);
	while (dl_learn_next(l->core, &a))
		obey(l, &a);
}

static float *delta_of(uint64_t handle)
{
	for (struct push *p = pushes; p; p = p->next)
		if (p->handle == handle)
			return p->delta;
	abort();
}

static void release(uint64_t handle)
{
	for (struct push **p = &pushes; *p; p = &(*p)->next)
		if ((*p)->handle == handle) {
			struct push *gone = *p;

			*p = gone->next;
			free(gone->delta);
			free(gone);
			return;
		}
}

/* The outer step of p, over the codec of updates: what it loses is owed. */
static void step_outer(uint32_t p, const struct dl_segment *segment,
	size_t segments, const float *update)
{
	const struct dl_outer outer = {(float)set.lr, (float)set.mu,
		set.nesterov != 0};
	size_t n = elements(p);
	float *next, *x;

	if (set.global == DL_CODEC_F32) {
		dl_outer_step(NULL, &outer, segment, segments, update, theta[p],
			momentum[p]);
		return;
	}
	next = dl_alloc_array(n, sizeof *next);
	x = dl_alloc_array(n, sizeof *x);
	memcpy(next, theta[p], n * sizeof *next);
	dl_outer_step(NULL, &outer, segment, segments, update, next,
		momentum[p]);
	for (size_t i = 0; i < n; i++)
		x[i] = owed[p][i] += next[i] - theta[p][i];
	through(set.global, p, x);
	for (size_t i = 0; i < n; i++) {
		owed[p][i] -= x[i];
		theta[p][i] += x[i];
	}
	free(next);
	free(x);
}

static void merge(const struct dl_sync_action *a)
{
	uint32_t p = a->fragment;
	size_t n = elements(p), count = 0, tensors = layout.fragment[p].tensors;
	struct dl_contribution *c = dl_alloc_array(a->parts, sizeof *c);
	struct dl_segment *segment = dl_alloc_array(tensors, sizeof *segment);
	float *update = dl_alloc_array(n, sizeof *update);
	struct dl_err e;

	for (size_t i = 0; i < tensors; i++) {
		const struct dl_layout_tensor *t =
			&layout.tensor[layout.fragment[p].first + i];

		segment[i] = (struct dl_segment){t->offset, t->elements,
			set.mean ? DL_MEAN : t->rule};
	}
	for (size_t i = 0; i < a->parts; i++) {
		const struct dl_sync_part *part = &a->part[i];
		float *delta = delta_of(part->push);

		if (count && !strcmp(c[count - 1].name, part->learner)) {
			dl_merge_add((float *)c[count - 1].delta, part->scale,
				delta, n);
			continue;
		}
		c[count++] = (struct dl_contribution){.name = part->learner,
			.weight = part->weight,
			.scale = part->scale,
			.delta = delta};
	}
	if (!dl_merge_fragment(NULL, segment, tensors, c, count, update, NULL,
			&e))
		step_outer(p, segment, tensors, update);
	free(update);
	free(segment);
	free(c);
}

static struct learner *by_name(const char *name)
{
	for (int i = 0; i < set.learners; i++)
		if (!strcmp(learner[i].name, name))
			return &learner[i];
	return NULL;
}

static void tell_syncer(const struct dl_sync_event *ev);

static void welcome(struct event *e, uint64_t clock)
{
	static struct dl_version *versions;
	static uint64_t *zeroes;

	if (!versions) {
		versions = dl_alloc_array(layout.fragments, sizeof *versions);
		zeroes = dl_alloc_array(layout.fragments, sizeof *zeroes);
		for (uint32_t p = 0; p < layout.fragments; p++)
			versions[p] = dl_sync_version(syncer, p);
	}
	e->learn.kind = DL_LE_WELCOME;
	e->learn.clock = clock;
	e->learn.versions = e->learn.origins = versions;
	e->learn.seqs = zeroes;
}

static void answer(const struct dl_sync_action *a)
{
	struct event *e = event(TO_LEARNER, set.delay, by_name(a->learner));
	size_t bytes = elements(a->fragment) * sizeof(float);

	e->learn.fragment = a->fragment;
	e->learn.step = a->step;
	e->learn.seq = a->seq;
	e->learn.taken = a->taken;
	e->learn.version = a->version;
	e->learn.final = a->final;
	switch (a->kind) {
	case DL_ACT_WELCOME:
		welcome(e, a->step);
		break;
	case DL_ACT_OPEN:
		e->learn.kind = DL_LE_OPEN;
		break;
	case DL_ACT_TAKEN:
		e->learn.kind = DL_LE_TAKEN;
		break;
	case DL_ACT_GLOBAL:
		e->learn.kind = DL_LE_GLOBAL;
		e->values = dl_alloc(bytes);
		memcpy(e->values, theta[a->fragment], bytes);
		e->at += (int64_t)(set.transfer * STEP_NS);
		break;
	case DL_ACT_END:
		e->learn.kind = DL_LE_END;
		break;
	default:
		free(e);
		return;
	}
	schedule(e);
}

static void tell_syncer(const struct dl_sync_event *ev)
{
	struct dl_sync_action a;
	struct dl_sync_event merged = {.kind = DL_EV_MERGED};
	int64_t wake;

	dl_sync_event(syncer, ev);
	while (dl_sync_next(syncer, &a)) {
		if (a.kind == DL_ACT_MERGE) {
			merge(&a);
			merged.now = now;
			merged.fragment = a.fragment;
			merged.version = a.version;
			tell_syncer(&merged);
		} else if (a.kind == DL_ACT_RELEASE) {
			release(a.push);
		} else if (a.kind == DL_ACT_DONE) {
			done = 1;
		} else {
			answer(&a);
		}
	}
	wake = dl_sync_wake(syncer);
	if (wake != INT64_MAX) {
		struct event *e = event(WAKE, 0, NULL);

		e->at = wake > now ? wake : now + 1;
		e->sync.kind = DL_EV_TIME;
		schedule(e);
	}
}

static void step(struct learner *l)
{
	struct dl_learn_event ev = {.kind = DL_LE_STEP,
		.now = now,
		.tokens = dl_training_step_tokens(&l->training)};

	ev.loss = dl_training_step(&l->training);
	tell_learner(l, &ev);
}

static void happen(struct event *e)
{
	now = e->at;
	switch (e->kind) {
	case BOUNDARY:
		step(e->learner);
		break;
	case TO_LEARNER:
		e->learn.now = now;
		if (e->values) {
			free(e->learner->incoming[e->learn.fragment]);
			e->learner->incoming[e->learn.fragment] = e->values;
		}
		tell_learner(e->learner, &e->learn);
		break;
	case TO_SYNCER:
	case WAKE:
		e->sync.now = now;
		tell_syncer(&e->sync);
		break;
	}
}

static void begin_learner(struct learner *l, int i)
{
	struct dl_training_options o = {.adamw = DL_ADAMW_DEFAULTS,
		.batch = (size_t)set.batch,
		.threads = 1,
		.seed = (uint64_t)set.seed,
		.slot = (uint64_t)i};
	struct dl_learn_config c = {.schedule = {layout.fragments,
					    (uint64_t)set.h},
		.tau = (uint64_t)set.tau,
		.wait = set.wait != 0,
		.apply = (enum dl_apply)set.apply,
		.alpha = set.alpha,
		.syncers = 1,
		.step_every = STEP_NS / 10};
	struct event *e;

	o.adamw.rate = set.inner;
	o.adamw.decay = set.decay;
	o.adamw.floor = set.floor;
	o.adamw.warmup = (uint64_t)set.warmup;
	o.adamw.steps = (uint64_t)set.steps;
	snprintf(l->name, sizeof l->name, "learner%02d", i);
	dl_training_init(&l->training, &llama, &corpus, &o);
	l->core = dl_learn_new(&c);
	l->anchor = dl_alloc_array(layout.fragments, sizeof *l->anchor);
	l->incoming = dl_alloc_array(layout.fragments, sizeof *l->incoming);
	/* slow: the second half of the learners takes that much longer */
	l->pace = i >= set.learners / 2 ? 1 + set.slow : 1;
	l->rng = (struct dl_rng){dl_rng_key((uint64_t)set.seed, 1000u
			+ (unsigned)i), 0};
	e = message(l, DL_EV_JOIN);
	e->sync.versions = dl_alloc_array(layout.fragments,
		sizeof *e->sync.versions);
	schedule(e);
}

static void begin_syncer(const float *start)
{
	struct dl_sync_config c;

	dl_sync_config_default(&c, layout.fragments);
	c.schedule.h = (uint64_t)set.h;
	c.tau = (uint64_t)set.tau;
	c.quorum = (uint32_t)set.quorum;
	c.min_h = (uint64_t)(set.minh < 0 ? set.h / 2 : set.minh);
	c.grace = set.grace ? DL_GRACE_ADAPTIVE : DL_GRACE_NONE;
	c.gamma = set.gamma;
	c.late = (enum dl_late)set.late;
	c.budget_steps = (uint64_t)set.steps;
	syncer = dl_sync_new(&c);
	theta = dl_alloc_array(layout.fragments, sizeof *theta);
	momentum = dl_alloc_array(layout.fragments, sizeof *momentum);
	owed = dl_alloc_array(layout.fragments, sizeof *owed);
	for (uint32_t p = 0; p < layout.fragments; p++) {
		theta[p] = dl_alloc_array(elements(p), sizeof **theta);
		momentum[p] = dl_alloc_array(elements(p), sizeof **momentum);
		owed[p] = dl_alloc_array(elements(p), sizeof **owed);
		gather(p, start, theta[p]);
	}
}

static void report(char *const *named)
{
	struct dl_training *t = &learner[0].training;
	double made = 0, overwritten = 0, merged = 0, late = 0;
	struct dl_sync_learner_info l;
	struct dl_sync_info info;
	double loss;

	for (uint32_t p = 0; p < layout.fragments; p++)
		scatter(p, theta[p], 0, 1, t->values);
	loss = dl_training_loss(t, corpus.train, corpus.tokens);
	dl_sync_info(syncer, &info);
	for (size_t i = 0; dl_sync_learner(syncer, i, &l); i++) {
		struct dl_learn_info own;

		dl_learn_info(learner[i].core, &own);
		made += (double)own.steps * layout.fragments;
		overwritten += (double)own.overwritten;
		merged += (double)l.merged_steps;
		late += (double)l.late_steps;
	}
	for (; *named; named++)
		printf("%s ", *named);
	printf("\t%.4f\t%llu\t%.3f\t%.1f\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\n",
		loss,
		(unsigned long long)info.tokens, info.participation,
		info.effective_h, overwritten / made, late / made,
		merged / made, bits(set.push), bits(set.global));
}

/* A number, or the name of a codec. */
static int read_value(const char *s, double *out)
{
	enum dl_codec codec;

	if (dl_codec_parse(s, &codec))
		return dl_parse_double(s, -1, 1e9, out);
	*out = codec;
	return 0;
}

static void read_settings(char *const *named)
{
	size_t n = sizeof known / sizeof *known, i;

	for (i = 0; i < n; i++)
		*(double *)((char *)&set + known[i].at) = known[i].value;
	for (; *named; named++) {
		size_t length = strcspn(*named, "=");

		for (i = 0; i < n; i++)
			if (strlen(known[i].name) == length
				&& !strncmp(known[i].name, *named, length))
				break;
		if (i == n || !(*named)[length]
			|| read_value(*named + length + 1,
				(double *)((char *)&set + known[i].at))) {
			fprintf(stderr, "quality: %s: no such setting\n",
				*named);
			exit(64);
		}
	}
}

static int open_all(char **argv, struct dl_err *e)
{
	struct dl_config config;
	int rc = dl_layout_read(&layout, argv[1], e);

	if (!rc)
		rc = dl_store_read_config(&config, NULL, argv[2], e);
	if (rc)
		return rc;
	dl_llama_init(&llama, &config);
	rc = dl_corpus_read(&corpus, argv + 3, 1, 0, config.vocab, 0.1, e);
	place = dl_alloc_array(layout.tensors, sizeof *place);
	for (size_t i = 0; !rc && i < layout.tensors; i++)
		place[i] = dl_llama_find(&llama, layout.tensor[i].name.s,
			layout.tensor[i].name.n)->at;
	return rc;
}

int main(int argc, char **argv)
{
	struct dl_err e;
	float *start;

	if (argc < 4) {
		fputs("usage: quality layout model data [name=value ...]\n",
			stderr);
		return 64;
	}
	read_settings(argv + 4);
	if (dl_blas_load(&e) || open_all(argv, &e)) {
		fprintf(stderr, "quality: %s\n", e.text);
		return e.code;
	}
	start = dl_alloc_array(llama.size, sizeof *start);
	if (dl_store_read_model(&llama, argv[2], start, &e)) {
		fprintf(stderr, "quality: %s\n", e.text);
		return e.code;
	}
	begin_syncer(start);
	for (int i = 0; i < set.learners; i++)
		begin_learner(&learner[i], i);
	while (queue && !done) {
		struct event *ev = queue;

		queue = ev->next;
		happen(ev);
		free(ev);
	}
	report(argv + 4);
	return 0;
}
