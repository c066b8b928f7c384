/* Pushes as they come: known, refused, or put where they will be merged. */
#include "sync/core.h"

static void answer(struct dl_sync *s, const struct learner *l,
	const struct dl_sync_event *ev, enum dl_taken taken,
	enum dl_refusal refusal, double scale)
{
	struct dl_sync_action *a = act_to(s, DL_ACT_TAKEN, l);

	a->fragment = ev->fragment;
	a->seq = ev->seq;
	a->taken = taken;
	a->refusal = refusal;
	a->scale = scale;
}

/* Where an accepted push goes. */
static enum dl_taken place(struct dl_sync *s, uint32_t p, struct push *push)
{
	struct fragment *f = &s->fragment[p];

	/* Before the first round nothing is late: a syncer that was set back to
	 * the start has learners who come back with what they did. */
	if (s->phase == RUNNING && f->step && push->step <= f->step) {
		push->late = 1;
		/* Who leaves makes no other push that its work could ride in:
		 * the last goes into the next round. */
		if (s->config.late == DL_LATE_DROP && !push->from->leaving)
			return DL_TAKEN_LATE;
		if (s->config.late == DL_LATE_NOW) {
			pushes_add(&f->alone, push);
			if (!f->merging)
				merge_alone(s, p);
			return DL_TAKEN_NOW;
		}
	}
	if (s->phase == RUNNING && !f->open) {
		pushes_add(&f->waiting, push);
		return DL_TAKEN_WAITING;
	}
	pushes_add(&f->round, push);
	report(s, p, push);
	return DL_TAKEN_ROUND;
}

static void take(struct dl_sync *s, struct learner *l,
	const struct dl_sync_event *ev, double scale)
{
	struct push push = {
		.from = l,
		.instance = ev->instance,
		.id = ev->push,
		.seq = ev->seq,
		.step = ev->step,
		.steps = ev->steps,
		.tokens = ev->tokens,
		.scale = scale,
	};
	enum dl_taken taken = place(s, ev->fragment, &push);

	/* With wait it may be held until this merges, and make no step. */
	if (!l->active) {
		l->active = 1;
		lives_change(s, l);
	}
	l->of[ev->fragment].kept += taken != DL_TAKEN_LATE;
	l->of[ev->fragment].pushed_steps += ev->steps;
	l->of[ev->fragment].pushed_tokens += ev->tokens;
	remember_norm(&s->fragment[ev->fragment],
		ev->norm * scale / (double)ev->steps);
	if (scale < 1)
		l->count.scaled++;
	if (push.late) {
		l->count.late_pushes++;
		if (taken == DL_TAKEN_LATE) {
			l->count.late_steps += ev->steps;
			l->count.late_tokens += ev->tokens;
		}
	}
	answer(s, l, ev, taken, DL_REFUSED_NOT, scale);
	if (taken == DL_TAKEN_LATE)
		act(s, DL_ACT_RELEASE)->push = ev->push;
}

/* A push that was taken before: says where it is. */
static void on_known_push(struct dl_sync *s, struct learner *l,
	const struct dl_sync_event *ev)
{
	enum dl_taken taken = DL_TAKEN_AGAIN;
	const struct push *push = find_pending(&s->fragment[ev->fragment], l,
		ev->instance, ev->seq, &taken);

	l->count.again++;
	if (push && push->seq == ev->seq)
		answer(s, l, ev, taken, DL_REFUSED_NOT, push->scale);
	else
		answer(s, l, ev, DL_TAKEN_AGAIN, DL_REFUSED_NOT, 1);
	act(s, DL_ACT_RELEASE)->push = ev->push;
}

/* Nobody waits for who has pushed what is refused, and may do so for ever: it
 * is no member of that round, unless a good push comes before the end. */
static void excuse(struct dl_sync *s, struct learner *l, uint32_t p)
{
	if (l->of[p].flag & REPORTED)
		return;
	l->of[p].flag |= REFUSED;
	s->fragment[p].tallied = 0;
}

static void refuse(struct dl_sync *s, struct learner *l,
	const struct dl_sync_event *ev, enum dl_refusal r)
{
	l->count.refused[r]++;
	l->count.refused_steps += ev->steps;
	answer(s, l, ev, DL_TAKEN_REFUSED, r, 1);
}

/* The instance that a push is of; NULL when it is from a connection that is
 * gone, or by nobody we know. */
static struct instance *pusher(const struct dl_sync *s,
	const struct learner *l, const struct dl_sync_event *ev)
{
	if (!l || !l->connected || !is_current(l, ev->instance)
		|| !serves(s, ev->fragment))
		return NULL;
	return find_instance(l, ev->instance);
}

void on_push(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);
	struct instance *in = pusher(s, l, ev);
	enum dl_refusal r;
	double scale;

	if (!in) {
		act(s, DL_ACT_RELEASE)->push = ev->push;
		return;
	}
	l->count.pushes++;
	l->count.elements_up += ev->elements;
	l->count.bytes_up += ev->bytes;
	if (ev->seq <= in->last[ev->fragment].taken) {
		on_known_push(s, l, ev);
		return;
	}
	in->last[ev->fragment].taken = ev->seq;
	r = judge_push(s, l, ev, &scale);
	if (r) {
		if (ev->step >= s->fragment[ev->fragment].round_step)
			excuse(s, l, ev->fragment);
		refuse(s, l, ev, r);
		act(s, DL_ACT_RELEASE)->push = ev->push;
		return;
	}
	take(s, l, ev, scale);
}

enum dl_refusal dl_sync_judge_push(
	const struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);
	struct instance *in = pusher(s, l, ev);
	double scale;

	if (!in || ev->seq <= in->last[ev->fragment].taken)
		return DL_REFUSED_NOT;
	return judge_push(s, l, ev, &scale);
}

void on_barred(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct learner *l = find_learner(s, ev->learner);
	struct instance *in = pusher(s, l, ev);

	if (!in)
		return;
	l->count.pushes++;
	l->count.bytes_up += ev->bytes;
	if (ev->seq > in->last[ev->fragment].taken)
		in->last[ev->fragment].taken = ev->seq;
	excuse(s, l, ev->fragment);
	refuse(s, l, ev, DL_REFUSED_BARRED);
}
