#include "state/stat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "state/stat_in.h"

static const int64_t latest = INT64_MAX / 4; /* of a tape, after its begin */

void dl_stat_init(struct dl_stat *s)
{
	memset(s, 0, sizeof *s);
	dl_history_init(&s->history);
	s->begun = -1;
}

static void drop_core(struct dl_stat *s)
{
	if (s->owned)
		dl_sync_free(s->core);
	s->core = NULL;
}

void dl_stat_release(struct dl_stat *s)
{
	drop_core(s);
	for (size_t i = 0; i < s->members; i++) {
		free(s->member[i].timeline);
		free(s->member[i].held);
	}
	free(s->member);
	free(s->fragment);
	dl_stat_init(s);
}

/* Buckets up to now. */
static void reach(struct dl_stat *s)
{
	while (dl_history_full(&s->history, s->t)) {
		dl_history_fold(&s->history);
		for (size_t i = 0; i < s->members; i++)
			dl_history_fold_held(s->member[i].held);
	}
	dl_history_at(&s->history, s->t);
}

static struct dl_history_part *bucket(struct dl_stat *s)
{
	return dl_history_at(&s->history, s->t);
}

/* Some member trains, while anybody has made a step within the stall. */
static void count_up(struct dl_stat *s, int64_t t)
{
	int64_t until = t;

	if (s->begun < 0)
		return;
	s->known_ns += t - s->t;
	if (t - s->lively > s->stall)
		until = s->lively + s->stall;
	if (s->training && until > s->t)
		s->up_ns += until - s->t;
}

void dl_stat_at(struct dl_stat *s, int64_t now, int64_t wall)
{
	int64_t passed = now > s->now ? now - s->now : 0;

	if (passed > latest - s->t)
		passed = latest - s->t;
	count_up(s, s->t + passed);
	s->t += passed;
	if (passed)
		s->now = now;
	s->totals.last = wall;
	reach(s);
}

/* A syncer that is away hears of nothing: of those who were there before. */
static void leave_gap(struct dl_stat *s, int64_t wall)
{
	int64_t t = wall - s->totals.first;

	dl_stat_settle(s);
	drop_core(s);
	if (t > latest)
		t = latest;
	if (t > s->t)
		s->t = t;
	reach(s);
	for (size_t i = 0; i < s->members; i++) {
		struct dl_stat_member *m = s->member + i;

		m->past = m->info;
		m->counting = 0;
		if (m->state == DL_STAT_UNKNOWN || m->state == DL_STAT_GONE)
			continue;
		dl_stat_spend(s, m, DL_STAT_UNKNOWN);
		dl_stat_become(s, m, DL_STAT_AWAY);
	}
	s->past.rounds = s->totals.rounds;
	s->past.merges = s->totals.merges;
	s->past_contributions = s->totals.contributions;
}

void dl_stat_begin(struct dl_stat *s, const char *run,
	const struct dl_sync_config *c, struct dl_sync *core, int64_t now,
	int64_t wall)
{
	uint32_t fragments = c->schedule.fragments;

	if (!s->totals.starts)
		s->totals.first = wall;
	else
		leave_gap(s, wall);
	s->totals.starts++;
	s->totals.last = wall;
	s->now = now;
	s->stall = c->stall_ns;
	s->core = core;
	strcpy(s->run, run);
	if (s->totals.fragments != fragments) {
		free(s->fragment);
		s->fragment = dl_alloc_array(fragments, sizeof *s->fragment);
		for (uint32_t p = 0; p < fragments; p++)
			s->fragment[p] = (struct dl_stat_fragment){
				.norm = NAN, .alike = DL_ALIKE_UNKNOWN};
		s->totals.fragments = fragments;
	}
	for (uint32_t p = 0; p < fragments; p++)
		s->fragment[p].step = 0;
	reach(s);
}

static void open_round(struct dl_stat *s, const struct dl_sync_action *a)
{
	struct dl_stat_fragment *f = s->fragment + a->fragment;

	if (a->step <= f->step)
		return; /* told to one more learner */
	f->step = a->step;
	f->opened = s->t;
	f->rounds++;
}

/* The learners' counts of rounds tell who was a member of the one that closes
 * with a merge: of a late push by itself, nobody. */
static void close_round(struct dl_stat *s, uint32_t p)
{
	struct dl_stat_fragment *f = s->fragment + p;
	struct dl_sync_learner_info info;
	uint64_t members = 0, reports = 0;
	size_t k = 0;

	for (size_t i = 0; dl_sync_learner(s->core, i, &info); i++) {
		struct dl_stat_member *m;

		while (k < s->members &&
			strcmp(s->member[k].name, info.name) < 0)
			k++;
		if (k == s->members)
			break;
		m = s->member + k;
		if (!m->counting || strcmp(m->name, info.name) != 0)
			continue;
		members += info.rounds - m->then.rounds;
		reports += info.reported - m->then.reported;
		m->then.rounds = info.rounds;
		m->then.reported = info.reported;
	}
	if (!members)
		return;
	f->members += members;
	f->reports += reports;
	f->closed++;
	f->open_ns += s->t - f->opened;
	bucket(s)->members += members;
	bucket(s)->reports += reports;
}

/* A learner's pushes are neighbours, each with the weight of all of them. */
static void share_out(struct dl_stat *s, const struct dl_sync_action *a)
{
	double all = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < a->parts; i++) {
			const struct dl_sync_part *part = a->part + i;

			if (i && !strcmp(part->learner, part[-1].learner))
				continue;
			if (!pass)
				all += part->weight;
			else if (all > 0)
				dl_stat_find(s, part->learner)->weight +=
					part->weight / all;
		}
	s->shared++;
}

/* An exponential moving average of what is known. */
static void smooth(double *average, double now)
{
	if (isfinite(now))
		*average = isnan(*average) ? now
					   : *average + 0.2 * (now - *average);
}

static void take_norm(struct dl_stat *s, const struct dl_sync_event *ev)
{
	smooth(&s->fragment[ev->fragment].norm, ev->norm / (double)ev->steps);
}

void dl_stat_act(struct dl_stat *s, const struct dl_sync_event *ev,
	const struct dl_sync_action *a)
{
	if (a->kind == DL_ACT_OPEN)
		open_round(s, a);
	if (a->kind == DL_ACT_TAKEN && ev->kind == DL_EV_PUSH &&
		a->taken <= DL_TAKEN_LATE)
		take_norm(s, ev);
	if (a->kind != DL_ACT_MERGE)
		return;
	share_out(s, a);
	close_round(s, a->fragment);
}

/* The time since its last event. One that was cut off and comes back may have
 * trained on. */
static void pass_time(struct dl_stat *s, struct dl_stat_member *m,
	const struct dl_sync_event *ev, const struct dl_sync_learner_info *info)
{
	int same = m->joins && m->then.instance == info->instance;

	if (ev->kind != DL_EV_JOIN || m->state != DL_STAT_AWAY || !same)
		dl_stat_charge(s, m);
	else if (!m->counting)
		dl_stat_spend(s, m, DL_STAT_UNKNOWN);
	else
		dl_stat_spend(s, m,
			info->steps > m->then.steps ? DL_STAT_TRAINING
						    : DL_STAT_AWAY);
	if (ev->kind == DL_EV_JOIN)
		m->joins += !same;
}

static uint64_t refusals(const struct dl_sync_learner_info *info)
{
	uint64_t n = 0;

	for (int r = DL_REFUSED_NOT + 1; r < DL_REFUSALS; r++)
		n += info->refused[r];
	return n;
}

/* What it has done since its last event in this start. */
static void pass_work(struct dl_stat *s, struct dl_stat_member *m,
	const struct dl_sync_learner_info *info)
{
	static const struct dl_sync_learner_info none;
	const struct dl_sync_learner_info *then =
		m->counting ? &m->then : &none;
	struct dl_history_part *b = bucket(s);

	if (m->counting && then->instance == info->instance &&
		info->steps >= then->steps && info->tokens >= then->tokens) {
		m->steps += info->steps - then->steps;
		m->tokens += info->tokens - then->tokens;
		b->tokens += info->tokens - then->tokens;
	}
	b->wasted += (double)(info->late_tokens - then->late_tokens) /
		     (double)s->totals.fragments;
	b->refused += refusals(info) - refusals(then);
	b->bytes_up += info->bytes_up - then->bytes_up;
	b->bytes_down += info->bytes_down - then->bytes_down;
}

static void make_step(struct dl_stat *s, struct dl_stat_member *m,
	const struct dl_sync_learner_info *info)
{
	m->lively = s->lively = s->t;
	if (s->begun < 0)
		s->begun = s->t;
	dl_stat_become(s, m, DL_STAT_TRAINING);
	if (isfinite(info->loss))
		dl_history_loss(bucket(s), info->loss);
}

static void pass_state(struct dl_stat *s, struct dl_stat_member *m,
	const struct dl_sync_event *ev, const struct dl_sync_learner_info *info)
{
	switch (ev->kind) {
	case DL_EV_JOIN:
		m->drained = 0;
		m->lively = s->t;
		dl_stat_become(
			s, m, info->steps ? DL_STAT_TRAINING : DL_STAT_JOINING);
		break;
	case DL_EV_STEP:
		if (info->steps > m->then.steps)
			make_step(s, m, info);
		break;
	case DL_EV_DRAINED:
		m->drained = 1;
		break;
	case DL_EV_LEAVE:
		if (!info->connected)
			dl_stat_become(
				s, m, m->drained ? DL_STAT_GONE : DL_STAT_AWAY);
		break;
	default:
		break;
	}
}

static void follow_learner(struct dl_stat *s, const struct dl_sync_event *ev)
{
	struct dl_sync_learner_info info;
	struct dl_stat_member *m;

	if (!dl_sync_find(s->core, ev->learner, &info))
		return;
	m = dl_stat_find(s, ev->learner);
	/* Of a connection to the syncer that was before. */
	if (!m->counting && ev->kind != DL_EV_JOIN)
		return;
	pass_time(s, m, ev, &info);
	pass_work(s, m, &info);
	pass_state(s, m, ev, &info);
	m->then = info;
	m->counting = 1;
	m->seen = s->totals.last;
	if (!m->first)
		m->first = m->seen;
}

void dl_stat_follow(struct dl_stat *s, const struct dl_sync_event *ev)
{
	struct dl_stat_fragment *f;

	if (ev->learner) {
		follow_learner(s, ev);
		return;
	}
	if (ev->kind != DL_EV_MERGED)
		return;
	f = s->fragment + ev->fragment;
	f->merges++;
	f->committed = s->totals.last;
	bucket(s)->merges++;
}

void dl_stat_alike(
	struct dl_stat *s, uint32_t fragment, const struct dl_alike *alike)
{
	smooth(&s->fragment[fragment].alike.mean, alike->mean);
	smooth(&s->fragment[fragment].alike.least, alike->least);
}

void dl_stat_line(struct dl_stat *s, const struct dl_tape_line *l)
{
	const struct dl_tape_start *start = &l->start;
	struct dl_sync_action a;

	if (l->kind == DL_TAPE_START) {
		dl_stat_begin(s, start->run, &start->config,
			start->restored
				? dl_sync_restore(&start->config, &start->saved)
				: dl_sync_new(&start->config),
			l->now, l->wall);
		s->owned = 1;
		return;
	}
	dl_stat_at(s, l->now, l->wall);
	dl_sync_event(s->core, &l->event);
	while (dl_sync_next(s->core, &a))
		dl_stat_act(s, &l->event, &a);
	dl_stat_follow(s, &l->event);
	if (l->event.kind == DL_EV_MERGED)
		dl_stat_alike(s, l->event.fragment, &l->made.alike);
}
