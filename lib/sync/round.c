/*
 * Rounds: opening, quorum, grace, closing (PAPER "The method": minimum quorum,
 * adaptive grace window).
 */
#include "sync/core.h"

#include <string.h>

/* Do learners who make half of the run's tokens have min_h steps on p? */
static int enough_steps(const struct dl_sync *s, uint32_t p)
{
	double all = 0, ready = 0;

	for (size_t i = 0; i < s->heres; i++) {
		const struct learner *l = s->here[i];

		if (!is_live(s, l))
			continue;
		if (l->step_ns <= 0)
			continue;
		all += l->step_tokens / l->step_ns;
		if (l->steps - l->of[p].got >= s->config.min_h)
			ready += l->step_tokens / l->step_ns;
	}
	return 2 * ready >= all;
}

static void enlist(struct dl_sync *s, struct learner *l, uint32_t p)
{
	struct fragment *f = &s->fragment[p];
	struct dl_sync_action *a;

	l->of[p].flag |= MEMBER;
	f->tallied = 0;
	if (l->ceiling < f->round_step)
		l->ceiling = f->round_step;
	a = act_to(s, DL_ACT_OPEN, l);
	a->fragment = p;
	a->step = f->round_step;
}

void report(
	const struct dl_sync *s, uint32_t p, const struct push *push)
{
	struct fragment *f = &s->fragment[p];
	struct learner *l = push->from;

	/* A push counts for a round when it was made for it, by whoever runs
	 * under that name now. */
	if (push->late || push->step < f->round_step || !l->connected
		|| !is_current(l, push->instance) || (l->of[p].flag & REPORTED))
		return;
	if (!is_live(s, l) || (l->of[p].flag & REFUSED))
		f->tallied = 0;
	l->of[p].flag = (l->of[p].flag & MEMBER) | REPORTED;
	if (!f->tallied)
		return;
	if (l->of[p].flag & MEMBER)
		f->tally.reported++;
}

/* From when on a round without a quorum asks those who came since, too. */
int64_t overdue_at(const struct dl_sync *s, uint32_t p)
{
	return s->fragment[p].opened_at + s->config.stall_ns;
}

void begin_round(struct dl_sync *s, uint32_t p, uint64_t step)
{
	struct fragment *f = &s->fragment[p];
	size_t i = s->opens++;

	for (; i > 0 && s->open[i - 1] > p; i--)
		s->open[i] = s->open[i - 1];
	s->open[i] = p;
	f->open = 1;
	f->tallied = 0;
	f->round_step = step;
	f->opened_at = s->now;
	f->quorum_at = f->close_at = INT64_MAX;
	if (overdue_at(s, p) < s->live_until)
		s->live_until = overdue_at(s, p);
	s->rounds++;
}

void end_round(struct dl_sync *s, uint32_t p)
{
	size_t i = 0;

	while (s->open[i] != p)
		i++;
	s->opens--;
	memmove(s->open + i, s->open + i + 1,
		(s->opens - i) * sizeof *s->open);
	s->fragment[p].open = 0;
}

static void open_round(struct dl_sync *s, uint32_t p, uint64_t step)
{
	struct fragment *f = &s->fragment[p];

	begin_round(s, p, step);
	for (size_t i = 0; i < s->learners; i++) {
		s->learner[i]->of[p].flag = 0;
		if (is_live(s, s->learner[i]))
			enlist(s, s->learner[i], p);
	}
	pushes_move(&f->round, &f->waiting);
	for (size_t i = 0; i < f->round.n; i++)
		report(s, p, &f->round.item[i]);
}

/* The clock has risen: a fragment whose due step was reached gets a round,
 * unless one is open or too few steps were made since the last. */
void consider_rounds(struct dl_sync *s)
{
	for (uint32_t p = 0; p < s->fragments; p++) {
		struct fragment *f = &s->fragment[p];
		uint64_t due = dl_due_latest(s->config.schedule, p, s->clock);

		if (due <= f->considered || !serves(s, p))
			continue;
		f->considered = due;
		if (!f->open && due > f->step && enough_steps(s, p))
			open_round(s, p, due);
	}
}

static int is_member(const struct learner *l, uint32_t p)
{
	return (l->of[p].flag & (MEMBER | REFUSED)) == MEMBER;
}

/* One that stalls after its push is not waited for, and may itself wait for the
 * round (with wait). */
static int takes_part(
	const struct dl_sync *s, const struct learner *l, uint32_t p)
{
	return is_live(s, l) || (l->connected && (l->of[p].flag & REPORTED));
}

static struct tally count(const struct dl_sync *s, uint32_t p)
{
	struct tally t = {0, 0};

	for (size_t i = 0; i < s->heres; i++) {
		const struct learner *l = s->here[i];

		if (!takes_part(s, l, p) || !is_member(l, p))
			continue;
		t.live++;
		if (l->of[p].flag & REPORTED)
			t.reported++;
	}
	return t;
}

/* slack = tau * step_time - (quorum_time + sync_time); grace = gamma * slack,
 * all smoothed (PAPER "Adaptive grace window"). */
static int64_t grace(struct dl_sync *s)
{
	double slack;

	switch (s->config.grace) {
	case DL_GRACE_NONE:
		return 0;
	case DL_GRACE_FIXED:
		return s->config.grace_ns;
	case DL_GRACE_ADAPTIVE:
		break;
	}
	slack = (double)s->config.tau * pace(s) - (s->quorum_ns + s->sync_ns);
	return slack > 0 ? (int64_t)(s->config.gamma * slack) : 0;
}

static void reach_quorum(struct dl_sync *s, struct fragment *f)
{
	f->quorum_at = s->now;
	s->quorum_ns = smooth(s->quorum_ns, (double)(s->now - f->opened_at));
	s->grace_ns = grace(s);
	f->close_at = s->now + s->grace_ns;
}

/* Members who died, or make steps and do not push, make room for those who came
 * since, and for those who have stalled: they may themselves be held until
 * others go on (with wait). */
static void enlist_others(struct dl_sync *s, uint32_t p)
{
	for (size_t i = 0; i < s->heres; i++)
		if (s->here[i]->active && !(s->here[i]->of[p].flag & MEMBER))
			enlist(s, s->here[i], p);
}

static void tally_members(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];

	f->tally = count(s, p);
	if (f->tally.live < s->config.quorum
		|| (f->tally.reported < s->config.quorum
			&& s->now >= overdue_at(s, p))) {
		enlist_others(s, p);
		f->tally = count(s, p);
	}
	f->tallied = s->lives;
}

void check_round(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];
	uint32_t quorum = s->config.quorum;
	struct tally t;

	if (!f->open || f->merging || s->phase != RUNNING)
		return;
	if (f->tallied != s->lives)
		tally_members(s, p);
	t = f->tally;
	if (t.reported >= quorum && f->quorum_at == INT64_MAX)
		reach_quorum(s, f);
	if (f->quorum_at != INT64_MAX && f->round.n
		&& (t.reported == t.live || s->now >= f->close_at)) {
		close_round(s, p);
		return;
	}
	if (t.live < quorum && s->config.below == DL_BELOW_MERGE && f->round.n
		&& s->now - f->opened_at >= s->config.below_ns)
		close_round(s, p);
}

void check_rounds(struct dl_sync *s)
{
	size_t i = 0;

	while (i < s->opens) {
		uint32_t p = s->open[i];

		check_round(s, p);
		i += s->fragment[p].open ? 1 : 0;
	}
}

int64_t round_wake(const struct dl_sync *s, uint32_t p)
{
	const struct fragment *f = &s->fragment[p];
	int64_t wake = INT64_MAX;

	if (!f->open || f->merging || s->phase != RUNNING)
		return wake;
	if (f->round.n)
		wake = f->close_at;
	if (s->config.below == DL_BELOW_MERGE && f->round.n
		&& f->opened_at + s->config.below_ns > s->now
		&& f->opened_at + s->config.below_ns < wake)
		wake = f->opened_at + s->config.below_ns;
	return s->live_until < wake ? s->live_until : wake;
}

/* Ends the open round of p and merges what it has; it has something. */
void close_round(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];

	for (size_t i = 0; i < s->learners; i++) {
		struct learner *l = s->learner[i];

		if (is_member(l, p)) {
			s->members++;
			l->count.rounds++;
			if (l->of[p].flag & REPORTED) {
				s->reported++;
				l->count.reported++;
			}
		}
		l->of[p].flag = 0;
	}
	end_round(s, p);
	if (f->round_step > f->step)
		f->step = f->round_step;
	pushes_move(&f->merge, &f->round);
	begin_merge(s, p);
}
