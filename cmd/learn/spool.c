#include "cmd/learn/spool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"

static const int64_t last_words = 5 * DL_SECOND;

static int begin(struct spool_link *s, struct look *k)
{
	const struct dl_spool_latest *v = &k->latest;
	struct dl_version *versions =
		dl_alloc_array(v->fragments, sizeof *versions);
	struct dl_message m = {.kind = DL_MSG_WELCOME,
		.run = v->run,
		.apply = v->apply,
		.global = v->global,
		.text = dl_buf_cstr(&k->layout),
		.text_n = k->layout.len,
		.epoch = v->epoch,
		.clock = v->clock,
		.h = v->h,
		.tau = v->tau,
		.wait = v->wait,
		.fragments = v->fragments,
		.versions = versions,
		.slot = DL_SLOT_NONE};
	int code = learner_begin(s->learner, &m, &k->err);

	free(versions);
	s->fragment = dl_alloc_array(v->fragments, sizeof *s->fragment);
	return code;
}

/* Is it the run that this learner takes part in, and its layout whole? */
static int is_the_run(const struct spool_link *s, struct look *k)
{
	const struct learner *l = s->learner;

	if (k->with_layout) {
		struct dl_layout layout;
		int code = dl_layout_parse(&layout,
			(const char *)k->layout.data, k->layout.len, &k->err);
		int same = !code && !strcmp(layout.hash, k->latest.layout);

		dl_layout_release(&layout);
		if (!same)
			k->code = dl_fail(&k->err, DL_DATA,
				"%s: layout.tsv is not that of global/latest",
				k->path);
		return same;
	}
	if (!strcmp(k->latest.run, l->run) &&
		!strcmp(k->latest.layout, l->layout.hash))
		return 1;
	k->code = dl_fail(
		&k->err, DL_PROTOCOL, "%s: now serves another run", k->path);
	return 0;
}

/* Does taken/NAME speak of this process, in the epoch of now? */
static int is_known(const struct spool_link *s, const struct look *k)
{
	return k->taken.fragments &&
	       k->taken.instance == s->learner->instance &&
	       k->taken.epoch == s->epoch;
}

static void welcome(struct spool_link *s, uint64_t clock, const struct look *k)
{
	uint32_t fragments = s->latest.fragments;
	struct dl_version *versions =
		dl_alloc_array(fragments, sizeof *versions);
	uint64_t *seqs = dl_alloc_array(fragments, sizeof *seqs);
	struct dl_learn_event ev = {.kind = DL_LE_WELCOME,
		.now = dl_now(),
		.clock = clock,
		.versions = versions,
		.origins = versions,
		.seqs = seqs};

	for (uint32_t p = 0; p < fragments; p++) {
		versions[p] = s->latest.fragment[p].version;
		seqs[p] = is_known(s, k) ? k->taken.fragment[p].taken : 0;
		s->fragment[p].answer = (struct dl_spool_answer){0};
	}
	weights_expect_updates(
		&s->learner->weights, strcmp(s->latest.global, "f32") != 0);
	s->learner->epoch = s->epoch;
	s->learner->uplink.welcomed = 1;
	s->ending = 0;
	s->stale = 1;
	cmd_debug("takes part in run %s, epoch %" PRIu64 ", clock %" PRIu64,
		s->latest.run, s->epoch, clock);
	learner_event(s->learner, &ev);
	free(versions);
	free(seqs);
}

/*
 * The first time there is nothing to be answered, so the learner takes the
 * clock of latest and begins. When the epoch has risen it waits until the
 * syncer that came back says what it has of it.
 */
static void meet(struct spool_link *s, const struct look *k)
{
	struct uplink *up = &s->learner->uplink;
	struct dl_learn_event lost = {.kind = DL_LE_LOST, .now = dl_now()};
	int first = !s->epoch;

	if (s->latest.epoch != s->epoch) {
		s->epoch = s->latest.epoch;
		s->stale = 1;
		if (up->welcomed)
			learner_event(s->learner, &lost);
		up->welcomed = 0;
	}
	if (!up->welcomed && (first || is_known(s, k)))
		welcome(s, first ? s->latest.clock : k->taken.clock, k);
}

static void answer(
	struct spool_link *s, uint32_t p, uint64_t seq, enum dl_taken taken)
{
	struct dl_learn_event ev = {.kind = DL_LE_TAKEN,
		.now = dl_now(),
		.fragment = p,
		.seq = seq,
		.taken = taken};

	learner_event(s->learner, &ev);
}

/* Of the pushes up to `taken` only the last has a word of its own; the others
 * were delivered when they were put, and are settled in time. */
static void hear_answer(
	struct spool_link *s, uint32_t p, const struct dl_spool_answer *now)
{
	struct dl_spool_answer *before = &s->fragment[p].answer;

	if (now->taken < before->taken || now->settled < before->settled)
		return;
	if (now->settled > before->settled)
		answer(s, p, now->settled, DL_TAKEN_SETTLED);
	if (now->taken != before->taken || now->word != before->word) {
		answer(s, p, now->taken, now->word);
		if (now->word == DL_TAKEN_REFUSED)
			cmd_warn("push %" PRIu64 " of fragment %" PRIu32
				 " was refused: %s",
				now->taken, p, dl_refusal_name(now->reason));
	}
	*before = *now;
}

static void hear(struct spool_link *s, const struct look *k)
{
	struct learner *l = s->learner;
	struct dl_learn_event ev = {.now = dl_now(), .step = s->latest.clock};

	if (is_known(s, k))
		for (uint32_t p = 0; p < k->taken.fragments; p++)
			hear_answer(s, p, &k->taken.fragment[p]);
	ev.kind = DL_LE_OPEN;
	for (size_t i = 0; i < k->opens; i++) {
		ev.fragment = k->open[i].fragment;
		ev.step = k->open[i].step;
		learner_event(l, &ev);
	}
	if (s->latest.state == DL_SPOOL_RUNNING || s->ending)
		return;
	s->ending = 1;
	ev.kind = DL_LE_END;
	ev.fragment = 0;
	learner_event(l, &ev);
}

/* Takes over what was found; 0, or a code that trying again may help. */
static int take(struct spool_link *s, struct look *k)
{
	if (!is_the_run(s, k))
		return k->code;
	/* An old copy, of a folder that others bring along. */
	if (k->latest.epoch < s->epoch)
		return 0;
	if (!s->learner->core && begin(s, k)) {
		learner_fail(s->learner, &k->err);
		return 0;
	}
	dl_spool_latest_release(&s->latest);
	s->latest = k->latest;
	k->latest = (struct dl_spool_latest){0};
	for (uint32_t p = 0; p < s->latest.fragments; p++)
		s->fragment[p].tried = 0;
	meet(s, k);
	if (s->learner->uplink.welcomed) {
		spool_put_again(s);
		hear(s, k);
	}
	spool_get(s);
	return 0;
}

static void look_done(struct dl_errand *errand)
{
	struct look *k = (struct look *)errand;
	struct spool_link *s = k->link;
	struct learner *l = s->learner;

	s->look_at = dl_now() + l->options->poll_ns;
	if (errand->dropped || l->finishing) {
		look_free(k);
		return;
	}
	if (k->code == DL_NOPERM || (k->code == DL_CANTCREAT && !l->core))
		learner_fail(l, &k->err);
	else if (!k->code)
		k->code = take(s, k);
	if (k->code && !s->failures++ && !l->finishing) {
		cmd_warn("%s: trying again", k->err.text);
		l->uplink.away_at = dl_now();
	}
	if (!k->code) {
		s->failures = 0;
		l->uplink.away_at = INT64_MAX;
	}
	look_free(k);
}

static void open_link(struct learner *l)
{
	struct spool_link *s = dl_alloc(sizeof *s);
	struct dl_err e;

	l->uplink.spool = s;
	s->learner = l;
	s->lock = -1;
	s->errands = dl_errands_new(&l->loop, &e);
	if (!s->errands)
		learner_fail(l, &e);
}

static void work(struct learner *l, int64_t now)
{
	struct spool_link *s;

	if (!l->uplink.spool)
		open_link(l);
	s = l->uplink.spool;
	if (now < s->look_at || l->uplink.parting)
		return;
	s->look_at = INT64_MAX;
	spool_tell(s, now);
	dl_errands_add(s->errands, &look_new(s, look_done)->errand);
}

static int64_t wake(const struct learner *l)
{
	const struct spool_link *s = l->uplink.spool;

	return l->uplink.parting ? s->closes_at : s->look_at;
}

static void hurry(struct learner *l, int64_t now)
{
	struct spool_link *s = l->uplink.spool;

	if (s->look_at != INT64_MAX)
		s->look_at = now;
}

static void send(struct learner *l, const struct dl_message *m)
{
	struct spool_link *s = l->uplink.spool;

	s->stale = 1;
	if (m->kind != DL_MSG_END)
		return;
	/* Everything is put, or about to be: errands keep their order. */
	s->doing = DL_SPOOL_DRAINED;
	spool_tell(s, dl_now());
}

static void push(struct learner *l, struct push *push)
{
	push->put = 0;
	if (push->sending || !l->uplink.welcomed) {
		weights_drop(&l->weights, push);
		return;
	}
	spool_tell(l->uplink.spool, dl_now());
	spool_put(l->uplink.spool, push);
}

static void part(struct learner *l, int64_t now)
{
	struct spool_link *s = l->uplink.spool;

	if (l->uplink.parting)
		return;
	l->uplink.parting = 1;
	s->closes_at = now + last_words;
	if (!s->errands)
		return;
	s->doing = DL_SPOOL_LEAVING;
	s->stale = 1;
	spool_tell(s, now);
}

static int closed(const struct learner *l)
{
	const struct spool_link *s = l->uplink.spool;

	return !s->errands || !dl_errands_left(s->errands) ||
	       dl_now() >= s->closes_at;
}

static void release(struct learner *l)
{
	struct spool_link *s = l->uplink.spool;

	if (!s)
		return;
	dl_errands_free(s->errands);
	dl_spool_unlock(&s->lock);
	dl_spool_latest_release(&s->latest);
	free(s->fragment);
	free(s);
	l->uplink.spool = NULL;
}

const struct uplink_carrier uplink_spool = {
	work, wake, hurry, send, push, part, closed, release};
