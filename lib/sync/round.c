/*
 * Rounds: opening, quorum, grace, closing (PAPER "The method": minimum quorum,
 * adaptive grace window, token-weighted merging).
 */
#include "sync/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

static void report(
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

/* Members who died make room for those who came since, and for those who have
 * stalled: they may themselves be held until others go on (with wait). */
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
	if (f->tally.live < s->config.quorum) {
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

static int by_learner(const void *a, const void *b)
{
	const struct push *x = a, *y = b;

	if (x->from != y->from)
		return x->from->rank < y->from->rank ? -1 : 1;
	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* w = tokens * (tokens / steps), of all the pushes of one learner. */
static void weigh(const struct push *push, struct dl_sync_part *part, size_t n)
{
	double steps = 0, tokens = 0;

	for (size_t i = 0; i < n; i++) {
		steps += (double)push[i].steps;
		tokens += (double)push[i].tokens;
	}
	for (size_t i = 0; i < n; i++)
		part[i] = (struct dl_sync_part){
			.learner = push[i].from->name,
			.push = push[i].id,
			.weight = tokens * (tokens / steps),
			.scale = push[i].scale,
		};
}

static void begin_merge(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];
	struct push *push = f->merge.item;
	struct dl_sync_action *a;
	size_t n = f->merge.n;

	qsort(push, n, sizeof *push, by_learner);
	free(f->part);
	f->part = dl_alloc_array(n, sizeof *f->part);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (push[end].from != push[i].from)
				break;
		weigh(push + i, f->part + i, end - i);
	}
	f->merging = 1;
	f->merging_at = s->now;
	a = act(s, DL_ACT_MERGE);
	a->fragment = p;
	a->step = f->step;
	a->version = (struct dl_version){s->epoch, f->version.number + 1};
	a->part = f->part;
	a->parts = n;
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

static void merge_alone(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];

	pushes_add(&f->merge, &f->alone.item[0]);
	f->alone.n--;
	memmove(f->alone.item, f->alone.item + 1,
		f->alone.n * sizeof *f->alone.item);
	begin_merge(s, p);
}

static const struct push *find_in(const struct pushes *list,
	const struct learner *l, uint64_t instance, uint64_t seq)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->item[i].from == l
			&& list->item[i].instance == instance
			&& list->item[i].seq >= seq)
			return &list->item[i];
	return NULL;
}

/* The first of l's pushes of p from seq on that is not settled, in whichever
 * list it is; NULL when there is none. */
static const struct push *find_pending(const struct fragment *f,
	const struct learner *l, uint64_t instance, uint64_t seq,
	enum dl_taken *taken)
{
	const struct {
		const struct pushes *list;
		enum dl_taken taken;
	} where[] = {{&f->merge, DL_TAKEN_ROUND}, {&f->round, DL_TAKEN_ROUND},
		{&f->alone, DL_TAKEN_NOW}, {&f->waiting, DL_TAKEN_WAITING}};
	const struct push *first = NULL;

	for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
		const struct push *push =
			find_in(where[i].list, l, instance, seq);

		if (!push || (first && first->seq < push->seq))
			continue;
		first = push;
		*taken = where[i].taken;
	}
	return first;
}

uint64_t settled(const struct dl_sync *s, const struct learner *l, uint32_t p)
{
	const struct instance *in = &l->instance[l->instances - 1];
	enum dl_taken taken;
	const struct push *first =
		find_pending(&s->fragment[p], l, in->id, 0, &taken);

	return first ? first->seq - 1 : in->taken[p];
}

/* Tells l which of its pushes of p it need not keep. */
void tell_settled(struct dl_sync *s, const struct learner *l, uint32_t p)
{
	uint64_t seq = settled(s, l, p);
	struct dl_sync_action *a;

	if (!seq)
		return;
	a = act_to(s, DL_ACT_TAKEN, l);
	a->fragment = p;
	a->seq = seq;
	a->taken = DL_TAKEN_SETTLED;
}

static void settle_merged(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];
	size_t n = f->merge.n;

	for (size_t i = 0; i < n; i++) {
		const struct push *push = &f->merge.item[i];
		struct learner *l = push->from;
		struct instance *in = find_instance(l, push->instance);

		if (in && in->merged[p] < push->seq)
			in->merged[p] = push->seq;
		l->of[p].kept--;
		l->count.merged_pushes++;
		l->count.merged_steps += push->steps;
		l->count.merged_tokens += push->tokens;
		s->contributed_steps += push->steps;
		if (!i || f->merge.item[i - 1].from != l)
			s->contributions++;
		act(s, DL_ACT_RELEASE)->push = push->id;
	}
	f->merge.n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct push *push = &f->merge.item[i];
		int last = i + 1 == n || push[1].from != push->from
			|| push[1].instance != push->instance;

		if (last && push->from->connected
			&& is_current(push->from, push->instance))
			tell_settled(s, push->from, p);
	}
}

void on_merged(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct fragment *f;

	if (ev->fragment >= s->fragments)
		return;
	f = &s->fragment[ev->fragment];
	if (!f->merging)
		return;
	f->merging = 0;
	f->settled = f->step;
	f->version = (struct dl_version){s->epoch, f->version.number + 1};
	s->merges++;
	s->sync_ns = smooth(s->sync_ns, (double)(s->now - f->merging_at));
	settle_merged(s, ev->fragment);
	if (s->phase == RUNNING)
		for (size_t i = 0; i < s->heres; i++)
			send_global(s, s->here[i], ev->fragment);
	if (f->alone.n)
		merge_alone(s, ev->fragment);
}

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
	if (ev->seq <= in->taken[ev->fragment]) {
		on_known_push(s, l, ev);
		return;
	}
	in->taken[ev->fragment] = ev->seq;
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

	if (!in || ev->seq <= in->taken[ev->fragment])
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
	if (ev->seq > in->taken[ev->fragment])
		in->taken[ev->fragment] = ev->seq;
	excuse(s, l, ev->fragment);
	refuse(s, l, ev, DL_REFUSED_BARRED);
}
