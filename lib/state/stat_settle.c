/* What has been counted, as figures. */
#include <math.h>
#include <string.h>

#include "state/stat_in.h"

/* What the core knows of it. */
static void settle_info(struct dl_stat *s, struct dl_stat_member *m,
	const struct dl_sync_learner_info *info)
{
	m->info = *info;
	m->info.name = NULL; /* the core's */
	dl_stat_add_counters(&m->info, &m->past);
	if (!isnan(info->loss))
		m->loss = info->loss;
	if (info->clock)
		m->clock = info->clock;
	if (info->connected && info->stalled)
		dl_stat_become(s, m, DL_STAT_STALLED);
}

static void settle_member(struct dl_stat *s, struct dl_stat_member *m)
{
	int64_t here;

	dl_stat_charge(s, m);
	here = m->ns[DL_STAT_JOINING] + m->ns[DL_STAT_TRAINING] +
	       m->ns[DL_STAT_STALLED];
	m->rate = here ? (double)m->steps * 1e9 / (double)here : 0;
	m->share = s->shared ? m->weight / (double)s->shared : 0;
	m->lag = s->totals.clock > m->clock ? s->totals.clock - m->clock : 0;
	m->wasted = m->info.late_tokens / s->totals.fragments;
	m->timeline = dl_resize(m->timeline, s->history.n + 1, 1);
	dl_history_timeline(m->held, s->history.n, m->timeline);
}

static void settle_sum(struct dl_stat *s)
{
	struct dl_stat_member *all = &s->all;

	*all = (struct dl_stat_member){
		.name = "*", .loss = NAN, .clock = s->totals.clock};
	for (size_t i = 0; i < s->members; i++) {
		const struct dl_stat_member *m = s->member + i;

		all->steps += m->steps;
		all->tokens += m->tokens;
		all->rate += m->rate;
		all->share += m->share;
		all->joins += m->joins;
		for (int k = 0; k < DL_STAT_STATES; k++)
			all->ns[k] += m->ns[k];
		if (m->seen > all->seen)
			all->seen = m->seen;
		if (m->first && (!all->first || m->first < all->first))
			all->first = m->first;
		dl_stat_add_counters(&all->info, &m->info);
	}
	all->wasted = all->info.late_tokens / s->totals.fragments;
}

/* Of a start's core, added to those of the starts before. */
static void settle_counts(struct dl_stat *s, const struct dl_sync_info *info)
{
	struct dl_sync_learner_info learner;
	struct dl_stat_totals *t = &s->totals;
	uint64_t steps = 0;

	for (size_t i = 0; dl_sync_learner(s->core, i, &learner); i++)
		steps += learner.merged_steps;
	t->epoch = info->epoch;
	t->clock = info->clock;
	t->tokens = info->tokens;
	t->rounds = s->past.rounds + info->rounds;
	t->merges = s->past.merges + info->merges;
	t->contributions = s->past_contributions;
	if (info->effective_h > 0)
		t->contributions +=
			(uint64_t)llround((double)steps / info->effective_h);
	t->ending = (uint64_t)info->ending;
	t->done = (uint64_t)info->done;
	t->quorum_ns = info->quorum_ns;
	t->grace_ns = (double)info->grace_ns;
	t->sync_ns = info->sync_ns;
	t->step_ns = info->step_ns;
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

static double bits(uint64_t bytes, uint64_t elements)
{
	return ratio(8 * (double)bytes, (double)elements);
}

static void settle_totals(struct dl_stat *s)
{
	const struct dl_stat_member *all = &s->all;
	struct dl_stat_totals *t = &s->totals;
	const int64_t *ns = all->ns;
	int64_t due = ns[DL_STAT_AWAY] + ns[DL_STAT_JOINING] +
		      ns[DL_STAT_TRAINING] + ns[DL_STAT_STALLED];

	t->live = s->training;
	t->closed = t->members = t->reports = 0;
	for (uint64_t p = 0; p < t->fragments; p++) {
		t->closed += s->fragment[p].closed;
		t->members += s->fragment[p].members;
		t->reports += s->fragment[p].reports;
	}
	t->participation = ratio((double)t->reports, (double)t->members);
	t->h = ratio((double)all->info.merged_steps, (double)t->contributions);
	t->goodput = ratio((double)ns[DL_STAT_TRAINING], (double)due);
	if (all->tokens)
		t->goodput *= 1 - (double)all->wasted / (double)all->tokens;
	t->uptime = ratio((double)s->up_ns, (double)s->known_ns);
	t->up_bits = bits(all->info.bytes_up, all->info.elements_up);
	t->down_bits = bits(all->info.bytes_down, all->info.elements_down);
}

void dl_stat_settle(struct dl_stat *s)
{
	struct dl_sync_learner_info learner;
	struct dl_sync_info info;

	if (!s->core)
		return;
	dl_sync_info(s->core, &info);
	settle_counts(s, &info);
	for (size_t i = 0; dl_sync_learner(s->core, i, &learner); i++)
		settle_info(s, dl_stat_find(s, learner.name), &learner);
	for (size_t i = 0; i < s->members; i++)
		settle_member(s, s->member + i);
	for (uint64_t p = 0; p < s->totals.fragments; p++)
		s->fragment[p].version = dl_sync_version(s->core, (uint32_t)p);
	settle_sum(s);
	settle_totals(s);
}

int dl_stat_takes_turns(const struct dl_stat *s)
{
	double closed = (double)s->totals.closed;
	double members = (double)s->totals.members / closed;
	double reports = (double)s->totals.reports / closed;

	return s->totals.closed >= 10 && members >= 1.5 &&
	       reports < 1 + 0.1 * (members - 1);
}
