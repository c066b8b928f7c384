/* The core's outside: making it, events in, actions out, what it shows. */
#include "sync/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

void dl_sync_config_default(struct dl_sync_config *c, uint32_t fragments)
{
	*c = (struct dl_sync_config){
		.schedule = {.fragments = fragments, .h = 24},
		.quorum = 1,
		.tau = 2,
		.min_h = 12,
		.grace = DL_GRACE_ADAPTIVE,
		.gamma = 0.9,
		.late = DL_LATE_DROP,
		.below = DL_BELOW_WAIT,
		.stall_ns = 60 * DL_SECOND,
		.end_ns = 60 * DL_SECOND,
		.max_rate = 16,
		.max_norm = 8,
		.refuse_norm = 100,
	};
}

static struct dl_sync *make(const struct dl_sync_config *c)
{
	struct dl_sync *s = dl_alloc(sizeof *s);

	s->config = *c;
	s->fragments = c->schedule.fragments;
	s->fragment = dl_alloc_array(s->fragments, sizeof *s->fragment);
	s->open = dl_alloc_array(s->fragments, sizeof *s->open);
	s->end_at = INT64_MAX;
	s->lives = 1;
	s->live_until = INT64_MAX;
	for (uint32_t p = 0; p < s->fragments; p++)
		s->served += serves(s, p) ? 1 : 0;
	return s;
}

struct dl_sync *dl_sync_new(const struct dl_sync_config *c)
{
	struct dl_sync *s = make(c);

	s->epoch = 1;
	for (uint32_t p = 0; p < s->fragments; p++)
		s->fragment[p].version = s->fragment[p].origin =
			(struct dl_version){1, 0};
	return s;
}

void dl_sync_free(struct dl_sync *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->learners; i++)
		free_learner(s->learner[i]);
	for (uint32_t p = 0; p < s->fragments; p++) {
		struct fragment *f = &s->fragment[p];

		free(f->round.item);
		free(f->waiting.item);
		free(f->alone.item);
		free(f->merge.item);
		free(f->part);
	}
	free(s->learner);
	free(s->slot);
	free(s->here);
	free(s->fragment);
	free(s->open);
	free(s->action);
	free(s);
}

struct dl_sync_action *act(struct dl_sync *s, enum dl_sync_action_kind kind)
{
	struct dl_sync_action *a;

	if (s->actions == s->action_cap) {
		s->action_cap = s->action_cap ? 2 * s->action_cap : 64;
		s->action = dl_resize(s->action, s->action_cap,
			sizeof *s->action);
	}
	a = &s->action[s->actions++];
	*a = (struct dl_sync_action){.kind = kind, .scale = 1};
	return a;
}

struct dl_sync_action *act_to(struct dl_sync *s, enum dl_sync_action_kind kind,
	const struct learner *l)
{
	struct dl_sync_action *a = act(s, kind);

	a->learner = l->name;
	a->instance = l->instance[l->instances - 1].id;
	return a;
}

void pushes_add(struct pushes *list, const struct push *p)
{
	if (list->n == list->cap) {
		list->cap = list->cap ? 2 * list->cap : 8;
		list->item = dl_resize(list->item, list->cap,
			sizeof *list->item);
	}
	list->item[list->n++] = *p;
}

void pushes_move(struct pushes *to, struct pushes *from)
{
	struct pushes empty = *to;

	if (!to->n) {
		*to = *from;
		*from = empty;
		return;
	}
	for (size_t i = 0; i < from->n; i++)
		pushes_add(to, &from->item[i]);
	from->n = 0;
}

static void on_want(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);

	if (l && l->connected && serves(s, ev->fragment))
		send_global(s, l, ev->fragment);
}

/* Of passes: what tells of steps comes before what follows from them. */
static int tells_steps(const struct dl_sync_event *ev)
{
	return ev->kind == DL_EV_JOIN || ev->kind == DL_EV_STEP
		|| ev->kind == DL_EV_APPLIED;
}

static int ends_moment(const struct dl_sync_event *ev)
{
	return ev->kind == DL_EV_TIME || ev->kind == DL_EV_MERGED;
}

void dl_sync_event(struct dl_sync *s, const struct dl_sync_event *ev)
{
	if (s->action_at == s->actions)
		s->action_at = s->actions = 0;
	if (ev->now > s->now)
		s->now = ev->now;
	if (s->now >= s->live_until)
		notice_stalls(s);
	if (s->aways && !s->back_by)
		s->back_by = s->now + DL_RETURN_NS;
	if (s->risen && !tells_steps(ev)) {
		s->risen = 0;
		if (s->phase == RUNNING)
			consider_rounds(s);
	}
	switch (ev->kind) {
	case DL_EV_JOIN:
		on_join(s, ev);
		break;
	case DL_EV_LEAVE:
		on_leave(s, ev);
		break;
	case DL_EV_STEP:
		on_step(s, ev);
		break;
	case DL_EV_PUSH:
		on_push(s, ev);
		break;
	case DL_EV_BARRED:
		on_barred(s, ev);
		break;
	case DL_EV_APPLIED:
		on_applied(s, ev);
		break;
	case DL_EV_WANT:
		on_want(s, ev);
		break;
	case DL_EV_DRAINED:
		on_drained(s, ev);
		break;
	case DL_EV_MERGED:
		on_merged(s, ev);
		break;
	case DL_EV_END:
		begin_end(s);
		break;
	case DL_EV_TIME:
	case DL_EV_KINDS:
		break;
	}
	/* Time passes with every event; each kind above may have changed who
	 * is live, which deadlines hold, and what a round still waits for. */
	if (!s->config.passes || ends_moment(ev)) {
		check_rounds(s);
		check_end(s);
	}
}

int dl_sync_next(struct dl_sync *s, struct dl_sync_action *a)
{
	if (s->action_at == s->actions)
		return 0;
	*a = s->action[s->action_at++];
	return 1;
}

int64_t dl_sync_wake(const struct dl_sync *s)
{
	int64_t wake = end_wake(s);

	for (size_t i = 0; i < s->opens; i++) {
		int64_t t = round_wake(s, s->open[i]);

		if (t < wake)
			wake = t;
	}
	return wake;
}

uint64_t dl_sync_clock(const struct dl_sync *s)
{
	return s->clock;
}

uint64_t dl_sync_epoch(const struct dl_sync *s)
{
	return s->epoch;
}

struct dl_version dl_sync_version(const struct dl_sync *s, uint32_t p)
{
	return s->fragment[p].version;
}

struct dl_version dl_sync_origin(const struct dl_sync *s, uint32_t p)
{
	const struct fragment *f = &s->fragment[p];

	return f->version.number == f->origin.number ? f->origin : f->version;
}

uint64_t dl_sync_taken(const struct dl_sync *s, const char *learner,
	uint64_t instance, uint32_t p)
{
	struct learner *l = find_learner(s, learner);
	struct instance *in = l ? find_instance(l, instance) : NULL;

	return in ? in->last[p].taken : 0;
}

int dl_sync_knows(const struct dl_sync *s, const char *learner)
{
	return find_learner(s, learner) != NULL;
}

uint64_t dl_sync_settled(const struct dl_sync *s, const char *learner,
	uint32_t p)
{
	const struct learner *l = find_learner(s, learner);

	return l && l->instances ? settled(s, l, p) : 0;
}

uint64_t dl_sync_round(const struct dl_sync *s, uint32_t p)
{
	const struct fragment *f = &s->fragment[p];

	return f->open && s->phase == RUNNING ? f->round_step : 0;
}

int dl_sync_merging(const struct dl_sync *s, uint32_t p)
{
	return s->fragment[p].merging;
}

int dl_sync_awaits(const struct dl_sync *s, uint32_t p, size_t i)
{
	const struct learner *l = s->learner[i];

	return dl_sync_round(s, p) && is_live(s, l) && l->of[p].flag == MEMBER;
}

enum dl_refusal dl_sync_judge(const struct dl_sync *s,
	const struct dl_sync_event *push)
{
	const struct learner *l = find_learner(s, push->learner);
	double scale;

	return l ? judge_push(s, l, push, &scale) : DL_REFUSED_NOT;
}

double pace(const struct dl_sync *s)
{
	double best = 0;

	for (size_t i = 0; i < s->heres; i++) {
		double t = s->here[i]->step_ns;

		if (t > 0 && is_live(s, s->here[i]) && (!best || t < best))
			best = t;
	}
	return best;
}

void dl_sync_info(const struct dl_sync *s, struct dl_sync_info *out)
{
	*out = (struct dl_sync_info){
		.fragments = s->fragments,
		.clock = s->clock,
		.tokens = s->tokens,
		.epoch = s->epoch,
		.rounds = s->rounds,
		.merges = s->merges,
		.quorum_ns = s->quorum_ns,
		.sync_ns = s->sync_ns,
		.step_ns = pace(s),
		.grace_ns = s->grace_ns,
		.learners = s->learners,
		.ending = s->phase != RUNNING,
		.final = s->phase >= SENDING,
		.done = s->phase == DONE,
	};
	if (s->members)
		out->participation = (double)s->reported / (double)s->members;
	if (s->contributions)
		out->effective_h = (double)s->contributed_steps
			/ (double)s->contributions;
	for (size_t i = 0; i < s->heres; i++)
		out->live += is_live(s, s->here[i]) ? 1 : 0;
}

static void tell(const struct dl_sync *s, const struct learner *l,
	struct dl_sync_learner_info *out)
{
	*out = l->count;
	out->name = l->name;
	out->instance = l->instances ? l->instance[l->instances - 1].id : 0;
	out->connected = l->connected;
	out->stalled = is_stalled(s, l);
	out->clock = l->clock;
	out->steps = l->steps;
	out->tokens = l->tokens;
	out->step_ns = l->step_ns;
	out->loss = l->loss;
}

int dl_sync_find(const struct dl_sync *s, const char *name,
	struct dl_sync_learner_info *out)
{
	const struct learner *l = find_learner(s, name);

	if (l)
		tell(s, l, out);
	return l != NULL;
}

int dl_sync_learner(const struct dl_sync *s, size_t i,
	struct dl_sync_learner_info *out)
{
	if (i >= s->learners)
		return 0;
	tell(s, s->learner[i], out);
	return 1;
}
