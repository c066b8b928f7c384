/*
 * The end of a run: everybody pushes everything, one last round a fragment
 * merges what came, the final values go out and are acknowledged.
 */
#include "sync/core.h"

static void next_phase(struct dl_sync *s, enum phase phase)
{
	int waits = phase == COLLECTING || phase == SENDING;

	s->phase = phase;
	s->end_at = waits ? s->now + s->config.end_ns : INT64_MAX;
}

void begin_end(struct dl_sync *s)
{
	if (s->phase != RUNNING)
		return;
	next_phase(s, COLLECTING);
	for (uint32_t p = 0; p < s->fragments; p++) {
		struct fragment *f = &s->fragment[p];

		if (!serves(s, p))
			continue;
		if (!f->open)
			begin_round(s, p, s->clock);
		pushes_move(&f->round, &f->waiting);
		for (size_t i = 0; i < s->heres; i++)
			if (is_live(s, s->here[i]))
				s->here[i]->of[p].flag |= MEMBER;
	}
	for (size_t i = 0; i < s->heres; i++)
		act_to(s, DL_ACT_END, s->here[i])->step = s->clock;
}

/* The learners still to be waited for in this phase. */
static size_t missing(const struct dl_sync *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->heres; i++) {
		const struct learner *l = s->here[i];

		if (s->phase == COLLECTING ? !l->drained
			: l->finals < s->served)
			n++;
	}
	return n;
}

/* Learners that were known to a syncer that is gone come back one by one. One
 * that the end does not wait for would train on without anybody to tell it. */
static int awaits_return(const struct dl_sync *s)
{
	return s->phase == COLLECTING && s->aways && s->now < s->back_by;
}

int64_t end_wake(const struct dl_sync *s)
{
	return awaits_return(s) && s->back_by < s->end_at ? s->back_by
							  : s->end_at;
}

static void close_all(struct dl_sync *s)
{
	for (uint32_t p = 0; p < s->fragments; p++) {
		struct fragment *f = &s->fragment[p];

		if (!f->open || f->merging)
			continue;
		if (f->round.n)
			close_round(s, p);
		else
			end_round(s, p);
	}
}

static int all_closed(const struct dl_sync *s)
{
	for (uint32_t p = 0; p < s->fragments; p++)
		if (s->fragment[p].open || s->fragment[p].merging)
			return 0;
	return 1;
}

static void send_finals(struct dl_sync *s)
{
	next_phase(s, SENDING);
	for (size_t i = 0; i < s->heres; i++) {
		s->here[i]->finals = 0;
		for (uint32_t p = 0; p < s->fragments; p++)
			if (serves(s, p))
				send_global(s, s->here[i], p);
	}
}

static void finish(struct dl_sync *s)
{
	next_phase(s, DONE);
	for (size_t i = 0; i < s->heres; i++)
		act_to(s, DL_ACT_BYE, s->here[i]);
	act(s, DL_ACT_DONE);
}

void check_end(struct dl_sync *s)
{
	if (s->phase == COLLECTING
		&& (s->now >= s->end_at
			|| (!missing(s) && !awaits_return(s))))
		next_phase(s, MERGING);
	if (s->phase == MERGING) {
		close_all(s);
		if (all_closed(s))
			send_finals(s);
	}
	if (s->phase == SENDING && (s->now >= s->end_at || !missing(s)))
		finish(s);
}

void on_drained(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);

	if (!l || !l->connected)
		return;
	if (s->phase == RUNNING)
		l->leaving = 1;
	else
		l->drained = 1;
}

void on_applied(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);

	if (!l || !l->connected || !serves(s, ev->fragment))
		return;
	l->of[ev->fragment].got = l->steps;
	l->count.elements_down += ev->elements;
	l->count.bytes_down += ev->bytes;
	if (s->phase == SENDING
		&& !dl_version_cmp(ev->version, dl_sync_version(s, ev->fragment)))
		l->finals++;
}
