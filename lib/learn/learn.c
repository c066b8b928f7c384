/* A learner's decisions (DESIGN "Rounds"): clocks, counters, boundaries. */
#include "learn/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A push that is not settled. */
struct sent {
	uint64_t seq, step, steps;
	int taken;   /* the syncer has it */
	int waiting; /* ... and has no round for it yet */
};

struct fragment {
	struct dl_version version; /* its anchor's */
	uint64_t seq;              /* of its last push */
	uint64_t steps, tokens;    /* since its last push or apply */
	uint64_t pushed_step;      /* the clock of its last push */
	uint64_t pushed_own;       /* own steps at its last push */
	uint64_t opened;           /* the highest `open` */
	/* a global that has come and is not applied */
	int waiting, final;
	struct dl_version waiting_version;
	uint64_t waiting_step;
	int done;                  /* holds the final values */
	struct sent *sent;         /* oldest first */
	size_t sents, sent_cap;
};

struct syncer {
	int connected;
	int ending;   /* said `end` */
	int answered; /* has our answer to it */
	uint64_t clock;
};

struct dl_learn {
	struct dl_learn_config config;
	uint32_t fragments;
	uint64_t trainer_clock, steps, tokens;
	struct fragment *fragment;
	struct syncer *syncer;
	int loaded;      /* the trainer has the model */
	int at_boundary; /* the trainer waits for `go` */
	int draining;
	int finished;
	int64_t step_told_at;
	double loss;
	uint64_t pushed, overwritten, lost;
	struct dl_learn_action *action; /* queue: [taken, n) */
	size_t action_at, actions, action_cap;
};

struct dl_learn *dl_learn_new(const struct dl_learn_config *c)
{
	struct dl_learn *l = dl_alloc(sizeof *l);

	l->config = *c;
	l->config.syncer = NULL;
	l->fragments = c->schedule.fragments;
	l->fragment = dl_alloc_array(l->fragments, sizeof *l->fragment);
	l->syncer = dl_alloc_array(c->syncers, sizeof *l->syncer);
	if (c->syncer) {
		uint32_t *map = dl_alloc_array(l->fragments, sizeof *map);

		memcpy(map, c->syncer, l->fragments * sizeof *map);
		l->config.syncer = map;
	}
	l->step_told_at = INT64_MIN / 2;
	l->loss = NAN;
	return l;
}

void dl_learn_free(struct dl_learn *l)
{
	if (!l)
		return;
	for (uint32_t p = 0; p < l->fragments; p++)
		free(l->fragment[p].sent);
	free((void *)l->config.syncer);
	free(l->fragment);
	free(l->syncer);
	free(l->action);
	free(l);
}

uint64_t dl_learn_clock(const struct dl_learn *l)
{
	uint64_t clock = 0;

	for (uint32_t i = 0; i < l->config.syncers; i++)
		if (l->syncer[i].clock > clock)
			clock = l->syncer[i].clock;
	return clock;
}

uint64_t dl_learn_clock_at(const struct dl_learn *l, uint32_t syncer)
{
	return l->syncer[syncer].clock;
}

static struct dl_learn_action *act(struct dl_learn *l,
	enum dl_learn_action_kind kind)
{
	struct dl_learn_action *a;

	if (l->actions == l->action_cap) {
		l->action_cap = l->action_cap ? 2 * l->action_cap : 64;
		l->action = dl_resize(l->action, l->action_cap,
			sizeof *l->action);
	}
	a = &l->action[l->actions++];
	*a = (struct dl_learn_action){.kind = kind, .clock = dl_learn_clock(l)};
	return a;
}

static uint32_t syncer_of(const struct dl_learn *l, uint32_t p)
{
	return l->config.syncer ? l->config.syncer[p] : 0;
}

static uint64_t clock_of(const struct dl_learn *l, uint32_t p)
{
	return l->syncer[syncer_of(l, p)].clock;
}

static int can_send(const struct dl_learn *l, uint32_t p)
{
	return l->syncer[syncer_of(l, p)].connected;
}

static void copy(struct dl_learn *l, uint32_t p)
{
	struct fragment *f = &l->fragment[p];
	struct dl_learn_action *a = act(l, DL_LA_COPY);

	if (f->sents == f->sent_cap) {
		f->sent_cap = f->sent_cap ? 2 * f->sent_cap : 2;
		f->sent = dl_resize(f->sent, f->sent_cap, sizeof *f->sent);
	}
	f->sent[f->sents++] = (struct sent){.seq = ++f->seq,
		.step = clock_of(l, p),
		.steps = f->steps};
	a->syncer = syncer_of(l, p);
	a->fragment = p;
	a->seq = f->seq;
	a->step = clock_of(l, p);
	a->base = f->version;
	a->steps = f->steps;
	a->tokens = f->tokens;
	l->pushed += f->steps;
	f->steps = f->tokens = 0;
	f->pushed_step = a->step;
	f->pushed_own = l->steps;
}

/* Is the run ending for p, or this learner? Then everything is pushed. */
static int must_deliver(const struct dl_learn *l, uint32_t p)
{
	return l->draining || l->syncer[syncer_of(l, p)].ending;
}

/* Opened by the syncer for a step that no push of ours was made for. */
static int is_opened(const struct dl_learn *l, const struct fragment *f)
{
	return !l->config.wait && f->opened > f->pushed_step;
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
	return !l->config.wait && f->waiting && !f->final
		&& f->pushed_step < f->waiting_step;
}

static void copy_what_is_due(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		struct fragment *f = &l->fragment[p];

		if (f->steps && !f->done && can_send(l, p)
			&& (must_deliver(l, p) || is_due(l, p)
				|| is_opened(l, f) || is_overtaken(l, f)))
			copy(l, p);
	}
}

static uint64_t scaled(double alpha, uint64_t n)
{
	return (uint64_t)floor(alpha * (double)n + 0.5);
}

/* What an apply does to the counters; what they lose is overwritten. */
static void count_apply(struct dl_learn *l, struct fragment *f)
{
	uint64_t keep = 0, tokens = 0;

	if (!f->final && l->config.apply == DL_APPLY_CARRY) {
		keep = f->steps;
		tokens = f->tokens;
	} else if (!f->final && l->config.apply == DL_APPLY_BLEND) {
		keep = scaled(l->config.alpha, f->steps);
		tokens = scaled(l->config.alpha, f->tokens);
	}
	l->overwritten += f->steps - keep;
	f->steps = keep;
	f->tokens = tokens;
}

static void tell_applied(struct dl_learn *l, uint32_t p)
{
	struct dl_learn_action *a = act(l, DL_LA_APPLIED);

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
	f->done = f->final;
	/* Its round is over; a push for it would only be late. */
	if (f->pushed_step < f->waiting_step)
		f->pushed_step = f->waiting_step;
	tell_applied(l, p);
}

static void apply(struct dl_learn *l, uint32_t p)
{
	struct fragment *f = &l->fragment[p];
	struct dl_learn_action *a = act(l, DL_LA_APPLY);

	count_apply(l, f);
	a->fragment = p;
	a->version = f->waiting_version;
	a->apply = f->final ? DL_APPLY_OVERWRITE : l->config.apply;
	a->alpha = l->config.alpha;
	a->final = f->final;
	adopt(l, p);
}

static void apply_what_came(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if (l->fragment[p].waiting)
			apply(l, p);
}

/* With wait: a fragment is still out tau steps after it was sent. One that
 * waits for a round is not: the round comes only when learners go on. */
static int is_out(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];

	return l->config.wait && f->sents && !f->sent[f->sents - 1].waiting
		&& l->steps - f->pushed_own >= l->config.tau;
}

static int must_hold(const struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if ((must_deliver(l, p) && !l->fragment[p].done)
			|| is_out(l, p))
			return 1;
	return 0;
}

/* Is everything of p with the syncer? It may still wait for a merge. */
static int is_delivered(const struct fragment *f)
{
	for (size_t i = 0; i < f->sents; i++)
		if (!f->sent[i].taken)
			return 0;
	return !f->steps;
}

/* Everything is final, or a draining learner has nothing left to deliver. */
static int is_finished(const struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		const struct fragment *f = &l->fragment[p];

		if (f->done)
			continue;
		if (!l->draining || !is_delivered(f))
			return 0;
	}
	return 1;
}

static int is_all_delivered(const struct dl_learn *l, uint32_t syncer)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		const struct fragment *f = &l->fragment[p];

		if (syncer_of(l, p) == syncer && !f->done && !is_delivered(f))
			return 0;
	}
	return 1;
}

/* Answers `end` once that syncer has everything. */
static void answer_ends(struct dl_learn *l)
{
	for (uint32_t i = 0; i < l->config.syncers; i++) {
		struct syncer *s = &l->syncer[i];

		if (!s->ending || s->answered || !s->connected
			|| !is_all_delivered(l, i))
			continue;
		s->answered = 1;
		act(l, DL_LA_DRAINED)->syncer = i;
	}
}

static void jump(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments && !l->config.wait; p++) {
		struct syncer *s = &l->syncer[syncer_of(l, p)];

		if (s->clock < l->fragment[p].opened)
			s->clock = l->fragment[p].opened;
	}
	if (l->trainer_clock == dl_learn_clock(l))
		return;
	l->trainer_clock = dl_learn_clock(l);
	act(l, DL_LA_CLOCK);
}

/* `step` goes out before a push that it explains, and now and then. */
static void tell_step(struct dl_learn *l, int64_t now, int needed)
{
	if (!needed && now - l->step_told_at < l->config.step_every)
		return;
	l->step_told_at = now;
	for (uint32_t i = 0; i < l->config.syncers; i++) {
		struct dl_learn_action *a;

		if (!l->syncer[i].connected)
			continue;
		a = act(l, DL_LA_STEP);
		a->syncer = i;
		a->clock = l->syncer[i].clock;
		a->steps = l->steps;
		a->tokens = l->tokens;
		a->loss = l->loss;
	}
}

static int any_due(const struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		if (dl_due(l->config.schedule, p, clock_of(l, p))
			|| is_opened(l, &l->fragment[p])
			|| is_overtaken(l, &l->fragment[p])
			|| must_deliver(l, p))
			return 1;
	return 0;
}

/* Everything that happens while the trainer stands at a boundary. */
static void work_at_boundary(struct dl_learn *l, int64_t now)
{
	if (!l->at_boundary)
		return;
	jump(l);
	tell_step(l, now, any_due(l));
	copy_what_is_due(l);
	apply_what_came(l);
	if (!is_finished(l) && !must_hold(l)) {
		l->at_boundary = 0;
		act(l, DL_LA_GO);
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
	if (!has_everything(l))
		return;
	l->loaded = 1;
	l->trainer_clock = dl_learn_clock(l);
	act(l, DL_LA_LOAD);
	l->at_boundary = 1;
}

static void forget(struct fragment *f, size_t i)
{
	f->sents--;
	memmove(f->sent + i, f->sent + i + 1,
		(f->sents - i) * sizeof *f->sent);
}

static void settle(struct dl_learn *l, uint32_t p, size_t i)
{
	struct fragment *f = &l->fragment[p];
	struct dl_learn_action *a = act(l, DL_LA_RELEASE);

	a->fragment = p;
	a->seq = f->sent[i].seq;
	forget(f, i);
}

static void settle_all(struct dl_learn *l, uint32_t p)
{
	while (l->fragment[p].sents)
		settle(l, p, 0);
}

static void finish(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++)
		settle_all(l, p);
	l->finished = 1;
	act(l, DL_LA_FINISH);
}

/* Where the trainer is, the event may let it go on. */
static void proceed(struct dl_learn *l, int64_t now)
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

static void on_welcome(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct syncer *s = &l->syncer[ev->syncer];

	*s = (struct syncer){.connected = 1, .clock = ev->clock};
	for (uint32_t p = 0; p < l->fragments; p++) {
		struct fragment *f = &l->fragment[p];

		if (syncer_of(l, p) != ev->syncer)
			continue;
		/* Opens of before are void, and after a clock that was set
		 * back the next must not look old. */
		f->opened = 0;
		if (f->pushed_step > s->clock)
			f->pushed_step = s->clock;
		if (f->version.epoch
			&& !dl_version_cmp(f->version, ev->origins[p]))
			f->version = ev->versions[p];
		for (size_t i = 0; i < f->sents; i++) {
			struct dl_learn_action *a;

			if (f->sent[i].seq <= ev->seqs[p])
				continue;
			f->sent[i].taken = f->sent[i].waiting = 0;
			if (f->sent[i].step > s->clock)
				f->sent[i].step = s->clock;
			a = act(l, DL_LA_RESEND);
			a->step = f->sent[i].step;
			a->syncer = ev->syncer;
			a->fragment = p;
			a->seq = f->sent[i].seq;
		}
	}
}

static void on_global(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];

	if (ev->final)
		settle_all(l, ev->fragment);
	if (dl_version_cmp(ev->version, f->version) < 0
		|| (f->waiting && dl_version_cmp(ev->version,
			f->waiting_version) < 0))
		return;
	/* The same again matters only as the final word. */
	if (!ev->final && !dl_version_cmp(ev->version, f->version))
		return;
	f->waiting = 1;
	f->final = ev->final;
	f->waiting_version = ev->version;
	f->waiting_step = ev->step;
}

static void on_taken(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];
	int kept = ev->taken == DL_TAKEN_ROUND || ev->taken == DL_TAKEN_WAITING
		|| ev->taken == DL_TAKEN_NOW;

	if (ev->taken == DL_TAKEN_SETTLED) {
		while (f->sents && f->sent[0].seq <= ev->seq)
			settle(l, ev->fragment, 0);
		return;
	}
	for (size_t i = 0; i < f->sents; i++) {
		if (f->sent[i].seq != ev->seq)
			continue;
		f->sent[i].taken = 1;
		f->sent[i].waiting = ev->taken == DL_TAKEN_WAITING;
		if (!kept)
			settle(l, ev->fragment, i);
		return;
	}
}

static void on_failed(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];

	for (size_t i = 0; i < f->sents; i++) {
		if (f->sent[i].seq != ev->seq)
			continue;
		l->pushed -= f->sent[i].steps;
		l->lost += f->sent[i].steps;
		forget(f, i);
		return;
	}
}

/* Nothing more will come from that syncer, nor be taken there. */
static void on_bye(struct dl_learn *l, const struct dl_learn_event *ev)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		if (syncer_of(l, p) != ev->syncer)
			continue;
		settle_all(l, p);
		l->fragment[p].done = 1;
	}
}

static void on_step(struct dl_learn *l, const struct dl_learn_event *ev)
{
	l->steps++;
	l->trainer_clock++;
	for (uint32_t i = 0; i < l->config.syncers; i++)
		l->syncer[i].clock++;
	l->tokens += ev->tokens;
	l->loss = ev->loss;
	for (uint32_t p = 0; p < l->fragments; p++) {
		l->fragment[p].steps++;
		l->fragment[p].tokens += ev->tokens;
	}
	l->at_boundary = 1;
}

static void on_reset(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		l->lost += l->fragment[p].steps;
		l->fragment[p].steps = l->fragment[p].tokens = 0;
	}
	l->loaded = l->at_boundary = 0;
}

void dl_learn_event(struct dl_learn *l, const struct dl_learn_event *ev)
{
	if (l->action_at == l->actions)
		l->action_at = l->actions = 0;
	if (l->finished)
		return;
	switch (ev->kind) {
	case DL_LE_WELCOME:
		on_welcome(l, ev);
		break;
	case DL_LE_LOST:
		l->syncer[ev->syncer] = (struct syncer){
			.clock = l->syncer[ev->syncer].clock};
		break;
	case DL_LE_OPEN:
		if (l->fragment[ev->fragment].opened < ev->step)
			l->fragment[ev->fragment].opened = ev->step;
		return; /* answered at the next boundary */
	case DL_LE_GLOBAL:
		on_global(l, ev);
		break;
	case DL_LE_TAKEN:
		on_taken(l, ev);
		break;
	case DL_LE_END:
		l->syncer[ev->syncer].ending = 1;
		break;
	case DL_LE_BYE:
		on_bye(l, ev);
		break;
	case DL_LE_FAILED:
		on_failed(l, ev);
		break;
	case DL_LE_STEP:
		on_step(l, ev);
		break;
	case DL_LE_RESET:
		on_reset(l);
		break;
	case DL_LE_DRAIN:
		l->draining = 1;
		break;
	}
	proceed(l, ev->now);
}

int dl_learn_next(struct dl_learn *l, struct dl_learn_action *a)
{
	if (l->action_at == l->actions)
		return 0;
	*a = l->action[l->action_at++];
	return 1;
}

struct dl_version dl_learn_version(const struct dl_learn *l, uint32_t p)
{
	return l->fragment[p].version;
}

void dl_learn_info(const struct dl_learn *l, struct dl_learn_info *out)
{
	*out = (struct dl_learn_info){
		.clock = dl_learn_clock(l),
		.steps = l->steps,
		.tokens = l->tokens,
		.pushed = l->pushed,
		.overwritten = l->overwritten,
		.lost = l->lost,
		.holding = l->at_boundary,
		.finished = l->finished,
	};
	for (uint32_t p = 0; p < l->fragments; p++) {
		out->unsent += l->fragment[p].steps;
		out->outstanding += l->fragment[p].sents;
	}
}
