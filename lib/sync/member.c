/* Who takes part: learners, their instances, their clocks. */
#include "sync/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static size_t place_in(
	struct learner *const *list, size_t n, const char *name)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(list[mid]->name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct learner *make_learner(struct dl_sync *s, const char *name)
{
	struct learner *l = find_learner(s, name);
	size_t i;

	if (l)
		return l;
	if (s->learners == s->learner_cap) {
		s->learner_cap = s->learner_cap ? 2 * s->learner_cap : 8;
		s->learner = dl_resize(s->learner, s->learner_cap,
			sizeof *s->learner);
		s->here = dl_resize(s->here, s->learner_cap, sizeof *s->here);
	}
	i = place_in(s->learner, s->learners, name);
	memmove(s->learner + i + 1, s->learner + i,
		(s->learners - i) * sizeof *s->learner);
	s->learners++;
	l = s->learner[i] = dl_alloc(sizeof *l);
	for (size_t k = i; k < s->learners; k++)
		s->learner[k]->rank = k;
	memcpy(l->name, name, strlen(name) + 1);
	index_learner(s, l);
	l->of = dl_alloc_array(s->fragments, sizeof *l->of);
	l->loss = NAN;
	return l;
}

/* A run never forgets a name: what an event costs follows those who are
 * here. */
static void arrive(struct dl_sync *s, struct learner *l)
{
	size_t i = place_in(s->here, s->heres, l->name);

	if (l->connected)
		return;
	s->aways -= (size_t)l->away;
	l->away = 0;
	memmove(s->here + i + 1, s->here + i,
		(s->heres++ - i) * sizeof *s->here);
	s->here[i] = l;
	l->connected = 1;
}

static void depart(struct dl_sync *s, struct learner *l)
{
	size_t i = place_in(s->here, s->heres, l->name);

	memmove(s->here + i, s->here + i + 1,
		(--s->heres - i) * sizeof *s->here);
	l->connected = 0;
}

void free_learner(struct learner *l)
{
	for (size_t i = 0; i < l->instances; i++)
		free(l->instance[i].last);
	free(l->instance);
	free(l->of);
	free(l);
}

struct instance *find_instance(const struct learner *l, uint64_t id)
{
	for (size_t i = 0; i < l->instances; i++)
		if (l->instance[i].id == id)
			return &l->instance[i];
	return NULL;
}

static void forget_oldest(struct learner *l)
{
	free(l->instance[0].last);
	l->instances--;
	memmove(l->instance, l->instance + 1,
		l->instances * sizeof *l->instance);
}

struct instance *make_instance(struct dl_sync *s, struct learner *l,
	uint64_t id)
{
	struct instance *in;

	if (l->instances == INSTANCES_KEPT)
		forget_oldest(l);
	l->instance = dl_resize(l->instance, l->instances + 1,
		sizeof *l->instance);
	in = &l->instance[l->instances++];
	in->id = id;
	in->last = dl_alloc_array(s->fragments, sizeof *in->last);
	return in;
}

/* Puts the instance that is here now at the end of the list. */
static void make_current(struct learner *l, struct instance *in)
{
	struct instance *last = &l->instance[l->instances - 1];
	struct instance keep = *in;

	memmove(in, in + 1, (size_t)(last - in) * sizeof *in);
	*last = keep;
}

int is_stalled(const struct dl_sync *s, const struct learner *l)
{
	return l->connected && s->now - l->step_at >= s->config.stall_ns;
}

/* Live: here, training, and not silent for too long. One that is still
 * loading its model has nothing to report and is not waited for. */
int is_live(const struct dl_sync *s, const struct learner *l)
{
	return l->connected && l->active && !is_stalled(s, l);
}

/* l is here, gone, or active from now on. */
void lives_change(struct dl_sync *s, const struct learner *l)
{
	s->lives++;
	s->usual_for = 0;
	if (is_live(s, l) && l->step_at + s->config.stall_ns < s->live_until)
		s->live_until = l->step_at + s->config.stall_ns;
}

/* Time has come to where somebody may have stalled, or a round is overdue. */
void notice_stalls(struct dl_sync *s)
{
	int64_t until = INT64_MAX;

	for (size_t i = 0; i < s->heres; i++) {
		int64_t stall = s->here[i]->step_at + s->config.stall_ns;

		if (is_live(s, s->here[i]) && stall < until)
			until = stall;
	}
	for (size_t i = 0; i < s->opens; i++) {
		int64_t overdue = overdue_at(s, s->open[i]);

		if (overdue > s->now && overdue < until)
			until = overdue;
	}
	s->live_until = until;
	s->lives++;
}

void send_global(struct dl_sync *s, const struct learner *l, uint32_t p)
{
	struct dl_sync_action *a = act_to(s, DL_ACT_GLOBAL, l);

	a->fragment = p;
	a->version = s->fragment[p].version;
	a->step = s->fragment[p].settled;
	a->final = s->phase == SENDING;
}

/* Takes what a learner says of its own progress; 1 when believed. */
static int accept_step(struct dl_sync *s, struct learner *l,
	const struct dl_sync_event *ev)
{
	double credit = l->credit;
	enum dl_refusal r = judge_step(s, l, ev, &credit);
	uint64_t steps, tokens;
	double dt;

	if (r) {
		l->count.refused[r]++;
		return 0;
	}
	steps = ev->steps - l->steps;
	tokens = ev->tokens - l->tokens;
	dt = (double)(s->now - l->step_at);
	if (steps && dt > 0) {
		l->step_ns = smooth(l->step_ns, dt / (double)steps);
		l->step_tokens = smooth(l->step_tokens,
			(double)tokens / (double)steps);
	}
	l->credit = credit;
	l->credit_at = s->now;
	l->ceiling += steps;
	l->steps = ev->steps;
	l->tokens = ev->tokens;
	s->tokens += tokens;
	if (ev->clock > l->clock)
		l->clock = ev->clock;
	return 1;
}

/* A known instance keeps its clock; a stranger gets the run's. */
static void begin_instance(struct dl_sync *s, struct learner *l,
	const struct dl_sync_event *ev)
{
	struct instance *in = find_instance(l, ev->instance);
	int known = in != NULL;

	if (!in)
		in = make_instance(s, l, ev->instance);
	make_current(l, in);
	l->brought = known ? ev->clock : 0;
	l->clock = judge_return(s, l);
	l->ceiling = l->clock;
	l->steps = ev->steps;
	l->tokens = ev->tokens;
	l->credit = (double)burst(s);
	l->credit_at = s->now;
	l->step_ns = l->step_tokens = 0;
	l->active = 0;
	l->loss = NAN;
	for (uint32_t p = 0; p < s->fragments; p++) {
		struct share *of = &l->of[p];

		of->got = ev->steps;
		of->pushed_steps = of->pushed_tokens = 0;
		of->flag = 0;
	}
}

static int same_version(struct dl_version a, struct dl_version b)
{
	return dl_version_cmp(a, b) == 0;
}

int is_current(const struct learner *l, uint64_t instance)
{
	return l->instances
		&& l->instance[l->instances - 1].id == instance;
}

/* Sends what it lacks, and the rounds that still wait for it. */
static void bring_up(struct dl_sync *s, struct learner *l,
	const struct dl_version *has)
{
	for (uint32_t p = 0; p < s->fragments; p++) {
		const struct fragment *f = &s->fragment[p];
		struct dl_sync_action *a;

		if (!serves(s, p))
			continue;
		tell_settled(s, l, p);
		if (s->phase == SENDING
			|| (!same_version(has[p], f->version)
				&& !same_version(has[p],
					dl_sync_origin(s, p))))
			send_global(s, l, p);
		if (s->phase != RUNNING || !f->open || l->of[p].flag != MEMBER)
			continue;
		a = act_to(s, DL_ACT_OPEN, l);
		a->fragment = p;
		a->step = f->round_step;
	}
}

/* One that comes back may never have seen the welcome that set its clock: a
 * clock too high is not a lie here, it just earns nothing. */
static void accept_hello(struct dl_sync *s, struct learner *l,
	const struct dl_sync_event *ev)
{
	struct dl_sync_event hello = *ev;
	uint64_t steps = ev->steps > l->steps ? ev->steps - l->steps : 0;

	if (hello.clock > l->ceiling + steps)
		hello.clock = l->clock + steps;
	accept_step(s, l, &hello);
}

void on_join(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = make_learner(s, ev->learner);
	int same = is_current(l, ev->instance) && l->joined_at;
	struct dl_sync_action *a;

	if (same)
		accept_hello(s, l, ev);
	else
		begin_instance(s, l, ev);
	if (l->clock < s->clock)
		l->clock = s->clock;
	if (l->ceiling < l->clock)
		l->ceiling = l->clock;
	arrive(s, l);
	l->drained = l->leaving = 0;
	l->finals = 0;
	l->joined_at = s->now ? s->now : 1;
	l->step_at = s->now;
	lives_change(s, l);
	a = act_to(s, DL_ACT_WELCOME, l);
	a->step = l->clock;
	bring_up(s, l, ev->versions);
	if (s->phase == DONE)
		act_to(s, DL_ACT_BYE, l);
	else if (s->phase != RUNNING)
		act_to(s, DL_ACT_END, l)->step = s->clock;
}

void on_leave(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);

	if (!l || !l->connected || !is_current(l, ev->instance))
		return;
	depart(s, l);
	lives_change(s, l);
}

void on_step(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);
	uint64_t steps;
	int was_live;

	if (!l || !l->connected)
		return;
	steps = l->steps;
	was_live = is_live(s, l);
	if (!accept_step(s, l, ev))
		return;
	l->loss = ev->loss;
	if (l->steps != steps) {
		l->step_at = s->now;
		l->active = 1;
		if (!was_live)
			lives_change(s, l);
	}
	if (l->clock > s->clock) {
		s->clock = l->clock;
		if (s->config.passes)
			s->risen = 1;
		else if (s->phase == RUNNING)
			consider_rounds(s);
	}
	if ((s->config.budget_tokens && s->tokens >= s->config.budget_tokens)
		|| (s->config.budget_steps
			&& s->clock >= s->config.budget_steps))
		begin_end(s);
}
