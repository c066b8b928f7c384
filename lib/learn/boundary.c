/*
 * What happens while the trainer stands at a step boundary: copy, apply, go
 * on; and when it must not go on, or is done.
 */
#include "learn/core.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* The first of those from p on that a boundary has to look at: few are due or
 * opened or have a global waiting, and the others cost nothing. */
static uint32_t next_called(const struct dl_learn *l, uint32_t p)
{
	const unsigned char *at =
		memchr(l->called + p, 1, l->fragments - p);

	return at ? (uint32_t)(at - l->called) : l->fragments;
}

static int can_send(const struct dl_learn *l, uint32_t p)
{
	return l->syncer[syncer_of(l, p)].connected;
}

static void copy(struct dl_learn *l, uint32_t p)
{
	struct fragment *f = &l->fragment[p];
	struct dl_learn_action *a = learn_act(l, DL_LA_COPY);

	if (f->sents == f->sent_cap) {
		f->sent_cap = f->sent_cap ? 2 * f->sent_cap : 2;
		f->sent = dl_resize(f->sent, f->sent_cap, sizeof *f->sent);
	}
	f->sent[f->sents++] = (struct sent){.seq = ++f->seq,
		.step = clock_of(l, p),
		.steps = steps_of(l, p),
		.own = l->steps};
	a->syncer = syncer_of(l, p);
	a->fragment = p;
	a->seq = f->seq;
	a->step = clock_of(l, p);
	a->base = dl_version_base(f->version, f->newest);
	a->steps = steps_of(l, p);
	a->tokens = tokens_of(l, p);
	l->pushed += steps_of(l, p);
	keep_of(l, p, 0, 0);
	f->pushed_step = a->step;
}

/* Is the run ending for p, or this learner? Then everything is pushed. */
static int must_deliver(const struct dl_learn *l, uint32_t p)
{
	return l->draining || l->syncer[syncer_of(l, p)].ending;
}

/* Opened by the syncer for a step that no push of ours was made for. With wait
 * the own due step comes first; who joined after it owes the push, since others
 * hold until it is there. */
static int is_opened(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];

	return f->opened > f->pushed_step &&
	       (!l->config.wait || f->opened <= clock_of(l, p));
}

/* Due by the own clock. While an earlier push is not settled, nothing waits
 * for another: the steps stay and ride in the next. With wait every due step
 * has its push, since others hold until it is there. */
static int is_due(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];

	return dl_due(l->config.schedule, p, clock_of(l, p)) &&
	       (l->config.wait || !f->sents);
}

/* A global of a round that this learner has not pushed to. */
static int is_overtaken(const struct dl_learn *l, const struct fragment *f)
{
	return !l->config.wait && f->waiting && !f->final &&
	       f->pushed_step < f->waiting_step;
}

/* A push has not reached the syncer yet. On a link that is slower than rounds
 * come, more would only queue up behind it, without end and too late: the
 * steps stay and ride in the next. */
static int is_on_its_way(const struct fragment *f)
{
	return f->sents && !f->sent[f->sents - 1].taken;
}

static int wants_copy(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];

	if (must_deliver(l, p) || is_due(l, p))
		return 1;
	return !is_on_its_way(f) && (is_opened(l, p) || is_overtaken(l, f));
}

static void copy_what_is_due(struct dl_learn *l)
{
	for (uint32_t p = next_called(l, 0); p < l->fragments;
		p = next_called(l, p + 1))
		if (steps_of(l, p) && !l->fragment[p].done && can_send(l, p) &&
			wants_copy(l, p))
			copy(l, p);
}

static uint64_t scaled(double alpha, uint64_t n)
{
	return (uint64_t)floor(alpha * (double)n + 0.5);
}

/* What an apply does to the counters; what they lose is overwritten. */
static void count_apply(struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];
	uint64_t keep = 0, tokens = 0;

	if (!f->final && l->config.apply == DL_APPLY_CARRY) {
		keep = steps_of(l, p);
		tokens = tokens_of(l, p);
	} else if (!f->final && l->config.apply == DL_APPLY_BLEND) {
		keep = scaled(l->config.alpha, steps_of(l, p));
		tokens = scaled(l->config.alpha, tokens_of(l, p));
	}
	l->overwritten += steps_of(l, p) - keep;
	keep_of(l, p, keep, tokens);
}

static void tell_applied(struct dl_learn *l, uint32_t p)
{
	struct dl_learn_action *a = learn_act(l, DL_LA_APPLIED);

	a->syncer = syncer_of(l, p);
	a->fragment = p;
	a->version = l->fragment[p].version;
}

/* The global that came is the fragment's from now on. */
static void adopt(struct dl_learn *l, uint32_t p)
{
	struct fragment *f = &l->fragment[p];

	f->version = f->waiting_version;
	f->waiting = 0;
	if (f->final) /* bye stays said */
		make_done(l, p);
	/* Its round is over; a push for it would only be late. */
	if (f->pushed_step < f->waiting_step)
		f->pushed_step = f->waiting_step;
	tell_applied(l, p);
}

static void apply(struct dl_learn *l, uint32_t p)
{
	struct fragment *f = &l->fragment[p];
	struct dl_learn_action *a = learn_act(l, DL_LA_APPLY);

	count_apply(l, p);
	a->fragment = p;
	a->version = f->waiting_version;
	a->apply = f->final ? DL_APPLY_OVERWRITE : l->config.apply;
	a->alpha = l->config.alpha;
	a->final = f->final;
	adopt(l, p);
}

/* Those with a round that no push was made for, or with work to deliver, are
 * looked at again. */
static void apply_what_came(struct dl_learn *l)
{
	for (uint32_t p = next_called(l, 0); p < l->fragments;
		p = next_called(l, p + 1)) {
		const struct fragment *f = &l->fragment[p];

		if (f->waiting)
			apply(l, p);
		l->called[p] =
			f->opened > f->pushed_step || must_deliver(l, p);
	}
}

/* The state goes to those who join, and is to have seen what their syncer has.
 * A newcomer's own is not so far yet. */
static void export_if_wanted(struct dl_learn *l)
{
	if (!l->exporting || l->newcomer || l->trainer_clock < l->export_at)
		return;
	l->exporting = 0;
	learn_act(l, DL_LA_EXPORT);
}

/* With wait: a push is still out tau steps after it was made. One that waits
 * for a round is not, nor one that was made for less than the open round wants:
 * only when the learner goes on can that close. */
static int is_out(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];

	for (size_t i = 0; i < f->sents; i++)
		if (!f->sent[i].waiting && f->sent[i].step >= f->opened &&
			l->steps - f->sent[i].own >= l->config.tau)
			return 1;
	return 0;
}

/* With wait: does a fragment that is out hold the trainer? Not before it has a
 * step for each round that waits for it. */
static int is_held(const struct dl_learn *l)
{
	int out = 0;

	for (uint32_t p = 0; p < l->fragments && l->config.wait; p++) {
		if (!steps_of(l, p) && is_opened(l, p))
			return 0;
		out |= is_out(l, p);
	}
	return out;
}

static int must_hold(const struct dl_learn *l)
{
	int delivers = l->draining;

	for (uint32_t i = 0; i < l->config.syncers; i++)
		delivers |= l->syncer[i].ending;
	for (uint32_t p = 0; p < l->fragments && (delivers || l->newcomer); p++)
		if ((must_deliver(l, p) && !l->fragment[p].done) ||
			(l->newcomer && learn_is_behind(&l->fragment[p])))
			return 1;
	return is_held(l);
}

/* Is everything of p with the syncer? It may still wait for a merge. */
static int is_delivered(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];

	for (size_t i = 0; i < f->sents; i++)
		if (!f->sent[i].taken)
			return 0;
	return !steps_of(l, p);
}

/* Everything is final, or a draining learner has nothing left to deliver. */
static int is_finished(const struct dl_learn *l)
{
	if (l->dones == l->fragments)
		return 1;
	for (uint32_t p = 0; p < l->fragments && l->draining; p++)
		if (!l->fragment[p].done && !is_delivered(l, p))
			return 0;
	return l->draining;
}

static int is_all_delivered(const struct dl_learn *l, uint32_t syncer)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if (syncer_of(l, p) == syncer && !l->fragment[p].done &&
			!is_delivered(l, p))
			return 0;
	return 1;
}

/* Answers `end` once that syncer has everything. */
static void answer_ends(struct dl_learn *l)
{
	for (uint32_t i = 0; i < l->config.syncers; i++) {
		struct syncer *s = &l->syncer[i];

		if (!s->ending || s->answered || !s->connected ||
			!is_all_delivered(l, i))
			continue;
		s->answered = 1;
		learn_act(l, DL_LA_DRAINED)->syncer = i;
	}
}

static void jump(struct dl_learn *l)
{
	for (uint32_t i = 0; i < l->config.syncers && !l->config.wait; i++) {
		struct syncer *s = &l->syncer[i];

		if (s->clock < s->opened)
			s->clock = s->opened;
	}
	if (l->trainer_clock == dl_learn_clock(l))
		return;
	l->trainer_clock = dl_learn_clock(l);
	learn_act(l, DL_LA_CLOCK);
}

static void call_due(struct dl_learn *l)
{
	for (uint32_t i = 0; i < l->config.syncers; i++) {
		uint32_t first, end;

		dl_due_range(
			l->config.schedule, l->syncer[i].clock, &first, &end);
		memset(l->called + first, 1, end - first);
	}
}

static int any_due(const struct dl_learn *l)
{
	for (uint32_t p = next_called(l, 0); p < l->fragments;
		p = next_called(l, p + 1))
		if (dl_due(l->config.schedule, p, clock_of(l, p)) ||
			is_opened(l, p) || is_overtaken(l, &l->fragment[p]) ||
			(must_deliver(l, p) && steps_of(l, p)))
			return 1;
	return 0;
}

/* `step` goes out before a push that it explains, and now and then; a syncer is
 * told the same only once. */
static void tell_step(struct dl_learn *l, int64_t now)
{
	if (now - l->step_told_at < l->config.step_every && !any_due(l))
		return;
	for (uint32_t i = 0; i < l->config.syncers; i++) {
		struct syncer *s = &l->syncer[i];
		struct dl_learn_action *a;

		if (!s->connected || (s->told_clock == s->clock &&
					     s->told_steps == l->steps))
			continue;
		l->step_told_at = now;
		s->told_clock = s->clock;
		s->told_steps = l->steps;
		a = learn_act(l, DL_LA_STEP);
		a->syncer = i;
		a->clock = s->clock;
		a->steps = l->steps;
		a->tokens = l->tokens;
		a->loss = l->loss;
	}
}

/* Everything that happens while the trainer stands at a boundary. */
static void work_at_boundary(struct dl_learn *l, int64_t now)
{
	if (!l->at_boundary)
		return;
	jump(l);
	call_due(l);
	tell_step(l, now);
	copy_what_is_due(l);
	apply_what_came(l);
	export_if_wanted(l);
	if (!is_finished(l) && !must_hold(l)) {
		l->at_boundary = l->newcomer = 0;
		learn_act(l, DL_LA_GO);
	}
}

static int has_everything(const struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if (!l->fragment[p].version.epoch)
			return 0;
	return 1;
}

/* Before the trainer has a model, globals are simply taken. */
static void load_when_complete(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		if (l->fragment[p].waiting)
			adopt(l, p);
	}
	if (!has_everything(l) || l->draining)
		return;
	l->loaded = 1;
	l->trainer_clock = dl_learn_clock(l);
	learn_act(l, DL_LA_LOAD);
	l->at_boundary = 1;
}

static void finish(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		learn_settle_all(l, p);
	l->finished = 1;
	learn_act(l, DL_LA_FINISH);
}

void learn_proceed(struct dl_learn *l, int64_t now)
{
	if (!l->loaded)
		load_when_complete(l);
	work_at_boundary(l, now);
	if (l->loaded && !l->at_boundary)
		return;
	answer_ends(l);
	if (is_finished(l))
		finish(l);
}
