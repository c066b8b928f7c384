/* The syncer's core, one rule of DESIGN's "Rounds" a test. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "sync/sync.h"
#include "tests/tap.h"

enum { P_MOST = 4, ACTS = 256 };

/* A core, and what it said to the last event. */
struct rig {
	struct dl_sync_config config;
	struct dl_sync *s;
	int64_t now;
	uint64_t handle; /* of the next push */
	struct dl_sync_action act[ACTS];
	char to[ACTS][DL_NAME_MAX + 1];
	size_t acts;
};

static const struct dl_version none[P_MOST];
static const int64_t ms = DL_SECOND / 1000;

/* One fragment, due every fourth step; no grace. */
static void rig_init(struct rig *r)
{
	*r = (struct rig){.handle = 1};
	dl_sync_config_default(&r->config, 1);
	r->config.schedule.h = 4;
	r->config.min_h = 2;
	r->config.grace = DL_GRACE_NONE;
}

static void rig_start(struct rig *r)
{
	r->s = dl_sync_new(&r->config);
}

static void rig_release(struct rig *r)
{
	dl_sync_free(r->s);
}

static void tell(struct rig *r, struct dl_sync_event ev)
{
	ev.now = r->now;
	dl_sync_event(r->s, &ev);
	for (r->acts = 0; dl_sync_next(r->s, &r->act[r->acts]); r->acts++)
		if (r->act[r->acts].learner)
			strcpy(r->to[r->acts], r->act[r->acts].learner);
		else
			r->to[r->acts][0] = '\0';
}

/* The first action of that kind to that learner (NULL: any) in the last
 * answer. */
static const struct dl_sync_action *said(
	const struct rig *r, enum dl_sync_action_kind kind, const char *to)
{
	for (size_t i = 0; i < r->acts; i++)
		if (r->act[i].kind == kind && (!to || !strcmp(r->to[i], to)))
			return &r->act[i];
	return NULL;
}

static size_t count(const struct rig *r, enum dl_sync_action_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < r->acts; i++)
		n += r->act[i].kind == kind;
	return n;
}

/* The instance of a name is its first letter. */
static void join_with(struct rig *r, const char *name, uint64_t clock,
	uint64_t steps, const struct dl_version *has)
{
	tell(r, (struct dl_sync_event){.kind = DL_EV_JOIN,
			.learner = name,
			.instance = (uint64_t)name[0],
			.clock = clock,
			.steps = steps,
			.tokens = 10 * steps,
			.versions = has});
}

static void join(struct rig *r, const char *name)
{
	join_with(r, name, 0, 0, none);
}

static void plain(struct rig *r, enum dl_sync_event_kind kind, const char *name)
{
	tell(r, (struct dl_sync_event){.kind = kind,
			.learner = name,
			.instance = name ? (uint64_t)name[0] : 0});
}

/* Reports, at 10 tokens a step. */
static void step(
	struct rig *r, const char *name, uint64_t clock, uint64_t steps)
{
	tell(r, (struct dl_sync_event){.kind = DL_EV_STEP,
			.learner = name,
			.clock = clock,
			.steps = steps,
			.tokens = 10 * steps,
			.loss = 1});
}

/* Steps from one clock to another, one a second. */
static void walk(struct rig *r, const char *name, uint64_t from, uint64_t to)
{
	for (uint64_t i = from + 1; i <= to; i++) {
		r->now += DL_SECOND;
		step(r, name, i, i);
	}
}

static struct dl_sync_event good_push(
	struct rig *r, const char *name, uint64_t seq, uint64_t at)
{
	return (struct dl_sync_event){.kind = DL_EV_PUSH,
		.learner = name,
		.instance = (uint64_t)name[0],
		.seq = seq,
		.step = at,
		.base = dl_sync_version(r->s, 0),
		.steps = 2,
		.tokens = 20,
		.norm = 1,
		.push = r->handle++};
}

/* Pushes two steps made by that clock; returns what `taken` says. */
static enum dl_taken push(
	struct rig *r, const char *name, uint64_t seq, uint64_t at)
{
	const struct dl_sync_action *a;

	tell(r, good_push(r, name, seq, at));
	a = said(r, DL_ACT_TAKEN, name);
	return a ? a->taken : DL_TAKENS;
}

/* Such a push, of values that are none. */
static void bad_push(
	struct rig *r, const char *name, uint64_t seq, uint64_t at)
{
	struct dl_sync_event ev = good_push(r, name, seq, at);

	ev.norm = NAN;
	tell(r, ev);
}

static void merged(struct rig *r, uint32_t p)
{
	tell(r, (struct dl_sync_event){.kind = DL_EV_MERGED, .fragment = p});
}

/* a and b have done n steps, one a second each. */
static void rig_pair(struct rig *r, uint64_t n)
{
	rig_start(r);
	join(r, "a");
	join(r, "b");
	for (uint64_t i = 1; i <= n; i++) {
		r->now += DL_SECOND;
		step(r, "b", i, i);
		step(r, "a", i, i);
	}
}

/* Each step of each schedule up to 9 by 9. */
static void test_due(void)
{
	int wrong = 0;

	for (uint32_t i = 0; i < 81; i++) {
		struct dl_schedule d = {.fragments = i % 9 + 1, .h = i / 9 + 1};

		for (uint64_t step = 1; step <= 2 * d.h; step++) {
			uint32_t first, end;

			dl_due_range(d, step, &first, &end);
			wrong += end > d.fragments;
			for (uint32_t p = 0; p < d.fragments; p++)
				wrong += dl_due(d, p, step) !=
					 (p >= first && p < end);
		}
	}
	ok(!wrong, "what is due at a step are neighbours");
}

static void test_opening(void)
{
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	join(&r, "a");
	join(&r, "idle");
	walk(&r, "a", 0, 3);
	ok(!count(&r, DL_ACT_OPEN), "no round before a due step");
	walk(&r, "a", 3, 4);
	ok(said(&r, DL_ACT_OPEN, "a") && said(&r, DL_ACT_OPEN, "a")->step == 4,
		"the first to reach the due step opens the round");
	ok(!said(&r, DL_ACT_OPEN, "idle"),
		"one that has made no step is no member");
	rig_release(&r);

	rig_init(&r);
	r.config.min_h = 3;
	rig_start(&r);
	join(&r, "a");
	walk(&r, "a", 0, 2);
	tell(&r, (struct dl_sync_event){.kind = DL_EV_APPLIED, .learner = "a"});
	walk(&r, "a", 2, 4);
	ok(!count(&r, DL_ACT_OPEN), "too few steps since p came: skipped");
	walk(&r, "a", 4, 7);
	ok(!count(&r, DL_ACT_OPEN), "... until p is due again");
	walk(&r, "a", 7, 8);
	ok(count(&r, DL_ACT_OPEN) == 1, "... and then opened");
	rig_release(&r);

	rig_init(&r);
	r.config.min_h = 4;
	rig_pair(&r, 2);
	r.now += DL_SECOND;
	tell(&r, (struct dl_sync_event){.kind = DL_EV_STEP,
			 .learner = "b",
			 .clock = 3,
			 .steps = 3,
			 .tokens = 10000});
	walk(&r, "a", 2, 4);
	ok(!count(&r, DL_ACT_OPEN),
		"who makes less than half of the tokens opens nothing alone");
	rig_release(&r);
}

static void test_quorum(void)
{
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	ok(push(&r, "a", 1, 4) == DL_TAKEN_ROUND, "a push for the open round");
	push(&r, "a", 2, 5);
	ok(!count(&r, DL_ACT_MERGE), "two pushes of one learner are no quorum");
	push(&r, "b", 1, 4);
	ok(count(&r, DL_ACT_MERGE) == 1, "two learners are");
	ok(said(&r, DL_ACT_MERGE, NULL)->parts == 3,
		"and all their pushes are merged");
	ok(said(&r, DL_ACT_MERGE, NULL)->version.number == 1 &&
			said(&r, DL_ACT_MERGE, NULL)->step == 4,
		"as the next version, of the round's step");
	rig_release(&r);

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	plain(&r, DL_EV_LEAVE, "a");
	push(&r, "b", 1, 4);
	ok(!count(&r, DL_ACT_MERGE), "who has left does not count");
	rig_release(&r);
}

static void test_weights(void)
{
	const struct dl_sync_part *part;
	struct dl_sync_event ev;
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 8);
	push(&r, "a", 1, 7);
	push(&r, "a", 2, 8);
	ev = good_push(&r, "b", 1, 8);
	ev.steps = 4;
	ev.tokens = 80;
	tell(&r, ev);
	part = said(&r, DL_ACT_MERGE, NULL)->part;
	ok(!strcmp(part[0].learner, "a") && !strcmp(part[2].learner, "b"),
		"parts are in order of names");
	ok(part[0].weight == 40.0 * 40 / 4 && part[1].weight == part[0].weight,
		"pushes of one learner weigh as one: tokens * tokens / steps");
	ok(part[2].weight == 80.0 * 80 / 4, "more tokens a step weigh more");
	rig_release(&r);
}

static void test_grace(void)
{
	struct dl_sync_info info;
	struct rig r;

	/* slack = 2 s - (0.2 s + 0), half of it */
	rig_init(&r);
	r.config.grace = DL_GRACE_ADAPTIVE;
	r.config.gamma = 0.5;
	rig_pair(&r, 4);
	r.now += 200 * ms;
	push(&r, "a", 1, 4);
	dl_sync_info(r.s, &info);
	ok(info.grace_ns == 900 * ms, "gamma * (tau * step - quorum - sync)");
	ok(dl_sync_wake(r.s) == r.now + 900 * ms, "wakes at its end");
	r.now += 899 * ms;
	plain(&r, DL_EV_TIME, NULL);
	ok(!count(&r, DL_ACT_MERGE), "within the grace the round stays open");
	r.now += 1 * ms;
	plain(&r, DL_EV_TIME, NULL);
	ok(count(&r, DL_ACT_MERGE) == 1, "after it the round closes");
	r.now += 100 * ms;
	merged(&r, 0);
	dl_sync_info(r.s, &info);
	ok(fabs(info.sync_ns - 100 * (double)ms) < 1, "sync time is measured");
	rig_release(&r);

	rig_init(&r);
	r.config.grace = DL_GRACE_FIXED;
	r.config.grace_ns = 5 * DL_SECOND;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	ok(dl_sync_wake(r.s) == r.now + 5 * DL_SECOND, "a fixed grace");
	push(&r, "b", 1, 4);
	ok(count(&r, DL_ACT_MERGE) == 1, "early close: everybody has reported");
	rig_release(&r);

	rig_init(&r);
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	ok(count(&r, DL_ACT_MERGE) == 1, "no grace");
	rig_release(&r);
}

static void late(struct rig *r, enum dl_late policy)
{
	rig_init(r);
	r->config.late = policy;
	rig_pair(r, 4);
	push(r, "a", 1, 4);
	merged(r, 0);
}

static void test_late(void)
{
	struct dl_sync_learner_info b;
	struct rig r;

	late(&r, DL_LATE_DROP);
	ok(push(&r, "b", 1, 4) == DL_TAKEN_LATE && count(&r, DL_ACT_RELEASE),
		"late: dropped");
	dl_sync_learner(r.s, 1, &b);
	ok(b.late_steps == 2 && b.late_tokens == 20, "... and shown as wasted");
	rig_release(&r);

	late(&r, DL_LATE_DROP);
	plain(&r, DL_EV_DRAINED, "b");
	ok(push(&r, "b", 1, 4) == DL_TAKEN_WAITING,
		"the last work of who leaves is not");
	plain(&r, DL_EV_LEAVE, "b");
	join(&r, "b");
	ok(push(&r, "b", 2, 4) == DL_TAKEN_LATE, "... unless it comes back");
	rig_release(&r);

	late(&r, DL_LATE_NEXT);
	ok(push(&r, "b", 1, 4) == DL_TAKEN_WAITING, "late: for the next round");
	walk(&r, "a", 4, 8);
	ok(count(&r, DL_ACT_OPEN) == 2 && !count(&r, DL_ACT_MERGE),
		"... of which it is no report");
	push(&r, "a", 2, 8);
	ok(said(&r, DL_ACT_MERGE, NULL)->parts == 2, "... but weighs there");
	rig_release(&r);

	late(&r, DL_LATE_NOW);
	ok(push(&r, "b", 1, 4) == DL_TAKEN_NOW && count(&r, DL_ACT_MERGE) == 1,
		"late: merged by itself");
	merged(&r, 0);
	ok(dl_sync_version(r.s, 0).number == 2, "... as a version of its own");
	rig_release(&r);

	rig_init(&r);
	rig_pair(&r, 2);
	ok(push(&r, "b", 1, 0) == DL_TAKEN_WAITING,
		"before the first round nothing is");
	rig_release(&r);
}

static void test_below_quorum(void)
{
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	plain(&r, DL_EV_LEAVE, "b");
	r.now += 1000 * DL_SECOND;
	plain(&r, DL_EV_TIME, NULL);
	ok(!count(&r, DL_ACT_MERGE), "below the quorum a round waits");
	rig_release(&r);

	rig_init(&r);
	r.config.quorum = 2;
	r.config.below = DL_BELOW_MERGE;
	r.config.below_ns = 30 * DL_SECOND;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	plain(&r, DL_EV_LEAVE, "b");
	ok(dl_sync_wake(r.s) == r.now + 30 * DL_SECOND, "... or for a time");
	r.now += 30 * DL_SECOND;
	plain(&r, DL_EV_TIME, NULL);
	ok(count(&r, DL_ACT_MERGE) == 1, "... and merges what it has");
	rig_release(&r);
}

static void test_stall(void)
{
	struct rig r;

	rig_init(&r);
	r.config.grace = DL_GRACE_FIXED;
	r.config.grace_ns = 1000 * DL_SECOND;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	r.now += 59 * DL_SECOND;
	step(&r, "a", 5, 5);
	ok(!count(&r, DL_ACT_MERGE), "who makes no step is waited for");
	ok(dl_sync_wake(r.s) == r.now + 1 * DL_SECOND, "... up to --stall");
	r.now += 1 * DL_SECOND;
	plain(&r, DL_EV_TIME, NULL);
	ok(count(&r, DL_ACT_MERGE) == 1, "... and not longer");
	rig_release(&r);

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	r.now += 61 * DL_SECOND;
	step(&r, "b", 5, 5);
	push(&r, "b", 1, 5);
	ok(count(&r, DL_ACT_MERGE) == 1,
		"who stalls after its push, waiting for others, has reported");
	rig_release(&r);
}

/* One who stalls may be held by another fragment, and needs to be told. */
static void test_stall_enlisted(void)
{
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 3);
	r.now += 61 * DL_SECOND;
	step(&r, "a", 4, 4);
	ok(said(&r, DL_ACT_OPEN, "b") != NULL,
		"below the quorum who stalls is told of the round");
	push(&r, "a", 1, 4);
	ok(!count(&r, DL_ACT_MERGE), "but not waited for");
	push(&r, "b", 1, 4);
	ok(count(&r, DL_ACT_MERGE) == 1, "until it pushes");
	rig_release(&r);
}

/* Members that make steps and never push do not hold those who came since. */
static void test_mute_member(void)
{
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	join(&r, "c");
	for (uint64_t i = 1; i < 60; i++) {
		r.now += DL_SECOND;
		step(&r, "a", 4 + i, 4 + i);
		step(&r, "b", 4 + i, 4 + i);
		step(&r, "c", 4 + i, i);
	}
	ok(!said(&r, DL_ACT_OPEN, "c"), "who comes later is no member");
	ok(dl_sync_wake(r.s) == r.now + 1 * DL_SECOND,
		"... while members are waited for");
	r.now += 1 * DL_SECOND;
	plain(&r, DL_EV_TIME, NULL);
	ok(said(&r, DL_ACT_OPEN, "c") != NULL,
		"... but is asked after --stall without a quorum");
	join(&r, "d");
	step(&r, "d", 64, 1);
	ok(said(&r, DL_ACT_OPEN, "d") != NULL, "... as who comes then");
	push(&r, "c", 1, 63);
	ok(count(&r, DL_ACT_MERGE) == 1, "and makes up the quorum");
	rig_release(&r);
}

/* One that comes back while it is held makes no step. */
static void test_held_return(void)
{
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_start(&r);
	join(&r, "a");
	walk(&r, "a", 0, 4);
	join_with(&r, "b", 4, 4, none);
	push(&r, "b", 1, 4);
	push(&r, "a", 1, 4);
	ok(count(&r, DL_ACT_MERGE) == 1,
		"who pushes takes part, though it has made no step here");
	rig_release(&r);
}

static void test_refusals(void)
{
	static const struct {
		enum dl_refusal want;
		double norm;
		uint64_t steps, tokens, step, epoch, number;
	} cases[] = {
		{DL_REFUSED_FINITE, NAN, 2, 20, 4, 1, 0},
		{DL_REFUSED_FINITE, INFINITY, 2, 20, 4, 1, 0},
		{DL_REFUSED_EMPTY, 1, 0, 20, 4, 1, 0},
		{DL_REFUSED_EMPTY, 1, 2, 0, 4, 1, 0},
		{DL_REFUSED_BASE, 1, 2, 20, 4, 0, 0},
		{DL_REFUSED_BASE, 1, 2, 20, 4, 1, 1},
		{DL_REFUSED_BASE, 1, 2, 20, 4, 2, 0},
		{DL_REFUSED_CLOCK, 1, 2, 20, 6, 1, 0},
		{DL_REFUSED_COUNT, 1, 5, 20, 4, 1, 0},
		{DL_REFUSED_COUNT, 1, 2, 41, 4, 1, 0},
	};
	struct dl_sync_learner_info a;
	struct rig r;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct dl_sync_event ev;
		const struct dl_sync_action *taken;

		rig_init(&r);
		rig_pair(&r, 4);
		ev = good_push(&r, "a", 1, cases[i].step);
		ev.norm = cases[i].norm;
		ev.steps = cases[i].steps;
		ev.tokens = cases[i].tokens;
		ev.base = (struct dl_version){cases[i].epoch, cases[i].number};
		tell(&r, ev);
		taken = said(&r, DL_ACT_TAKEN, "a");
		dl_sync_learner(r.s, 0, &a);
		ok(taken && taken->taken == DL_TAKEN_REFUSED &&
				taken->refusal == cases[i].want &&
				a.refused[cases[i].want] == 1 &&
				a.refused_steps == cases[i].steps &&
				count(&r, DL_ACT_RELEASE) == 1,
			"refused and counted: %s",
			dl_refusal_name(cases[i].want));
		ok(push(&r, "a", 2, 4) == DL_TAKEN_ROUND, "... only that push");
		rig_release(&r);
	}
}

/* What waits for a merge takes memory, so there is an end to it. */
static void test_hoard(void)
{
	const struct dl_sync_action *taken;
	struct dl_sync_learner_info a;
	struct dl_sync_event ev;
	uint64_t seq = 0;
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	step(&r, "a", 40, 40);
	r.now += 20 * DL_SECOND;
	step(&r, "a", 80, 80);
	do {
		ev = good_push(&r, "a", ++seq, 4);
		ev.steps = 1;
		ev.tokens = 10;
		tell(&r, ev);
		taken = said(&r, DL_ACT_TAKEN, "a");
	} while (seq < 90 && taken && taken->taken == DL_TAKEN_ROUND);
	ok(seq == 65 && taken && taken->taken == DL_TAKEN_REFUSED &&
			taken->refusal == DL_REFUSED_RATE &&
			count(&r, DL_ACT_RELEASE) == 1,
		"of a learner's small pushes 64 are kept for a fragment");
	dl_sync_learner(r.s, 0, &a);
	ok(a.refused[DL_REFUSED_RATE] == 1, "... and others counted");
	ev = good_push(&r, "a", ++seq, 4);
	ev.steps = 2;
	ev.tokens = 20;
	tell(&r, ev);
	taken = said(&r, DL_ACT_TAKEN, "a");
	ok(taken && taken->taken == DL_TAKEN_ROUND,
		"one of half of H steps is a learner's who waits for others");
	push(&r, "b", 1, 4);
	merged(&r, 0);
	ok(push(&r, "a", seq + 1, 40) == DL_TAKEN_WAITING,
		"once they are merged it may push again");
	rig_release(&r);
}

/* A push that the driver would not read. */
static void test_barred(void)
{
	struct dl_sync_learner_info a;
	const struct dl_sync_action *taken;
	struct dl_sync_event ev;
	struct rig r;

	rig_init(&r);
	r.config.grace = DL_GRACE_FIXED;
	r.config.grace_ns = 5 * DL_SECOND;
	rig_pair(&r, 4);
	push(&r, "b", 1, 4);
	ok(!count(&r, DL_ACT_MERGE), "a round waits for its members");
	ev = good_push(&r, "a", 1, 4);
	ev.kind = DL_EV_BARRED;
	ev.bytes = 100;
	tell(&r, ev);
	taken = said(&r, DL_ACT_TAKEN, "a");
	dl_sync_learner(r.s, 0, &a);
	ok(taken && taken->taken == DL_TAKEN_REFUSED && taken->seq == 1 &&
			taken->refusal == DL_REFUSED_BARRED &&
			a.refused[DL_REFUSED_BARRED] == 1 &&
			a.refused_steps == 2 && a.pushes == 1 &&
			a.bytes_up == 100 && !count(&r, DL_ACT_RELEASE),
		"a push it has no right to is refused and counted");
	ok(count(&r, DL_ACT_MERGE) == 1 && said(&r, DL_ACT_MERGE, NULL)->parts
						   == 1,
		"... and nobody waits for it any more");
	ok(dl_sync_taken(r.s, "a", 'a', 0) == 1, "... nor is it asked for");
	ev.instance++;
	tell(&r, ev);
	dl_sync_learner(r.s, 0, &a);
	ok(a.pushes == 1, "another process's does not count");
	rig_release(&r);
}

/* A learner whose pushes are bad holds nobody up, in lock-step least of all. */
static void test_refused(void)
{
	struct dl_sync_info info;
	struct rig r;

	rig_init(&r);
	r.config.grace = DL_GRACE_FIXED;
	r.config.grace_ns = INT64_MAX / 4;
	rig_pair(&r, 4);
	push(&r, "b", 1, 4);
	ok(!count(&r, DL_ACT_MERGE), "everybody is waited for");
	bad_push(&r, "a", 1, 4);
	ok(count(&r, DL_ACT_MERGE) == 1, "... but for one who was refused");
	merged(&r, 0);
	dl_sync_info(r.s, &info);
	ok(info.participation == 1, "... which was no member");
	rig_release(&r);

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	push(&r, "b", 1, 4);
	bad_push(&r, "a", 1, 4);
	ok(!count(&r, DL_ACT_MERGE) && !count(&r, DL_ACT_OPEN),
		"it makes up no quorum, and is not asked again");
	push(&r, "a", 2, 4);
	ok(count(&r, DL_ACT_MERGE) == 1 && said(&r, DL_ACT_MERGE, NULL)->parts
						   == 2,
		"a good push for the round makes it a member again");
	bad_push(&r, "a", 3, 4);
	ok(!count(&r, DL_ACT_OPEN), "a bad one after it changes nothing");
	rig_release(&r);
}

static void test_reports(void)
{
	struct dl_sync_learner_info a;
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 4);
	step(&r, "a", 7, 5);
	dl_sync_learner(r.s, 0, &a);
	ok(a.refused[DL_REFUSED_CLOCK] == 1 && dl_sync_clock(r.s) == 4,
		"a clock above its steps is refused");
	step(&r, "a", 5, 3);
	dl_sync_learner(r.s, 0, &a);
	ok(a.refused[DL_REFUSED_COUNT] == 1, "steps that fall are refused");
	r.now += DL_SECOND;
	step(&r, "a", 2000000, 2000000);
	dl_sync_learner(r.s, 0, &a);
	ok(a.refused[DL_REFUSED_RATE] == 1 && dl_sync_clock(r.s) == 4,
		"and more than anybody can make, even of two");
	rig_release(&r);

	rig_init(&r);
	rig_start(&r);
	join(&r, "a");
	join(&r, "b");
	join(&r, "c");
	for (uint64_t i = 1; i <= 10; i++) {
		r.now += DL_SECOND;
		step(&r, "a", i, i);
		step(&r, "b", i, i);
		step(&r, "c", i, i);
	}
	r.now += DL_SECOND;
	step(&r, "c", 1000, 1000);
	dl_sync_learner(r.s, 2, &a);
	ok(a.refused[DL_REFUSED_RATE] == 1 && dl_sync_clock(r.s) == 10,
		"so is one that rises too fast");
	step(&r, "c", 11, 11);
	ok(dl_sync_clock(r.s) == 11, "... and the next honest one is taken");
	rig_release(&r);
}

/* The syncer stood for a while, and then reads all that came meanwhile. */
static void test_backlog(void)
{
	const char *const names[] = {"a", "b", "c"};
	struct dl_sync_learner_info info;
	uint64_t refused = 0, made = 0;
	struct rig r;

	rig_init(&r);
	rig_start(&r);
	for (int i = 0; i < 3; i++)
		join(&r, names[i]);
	for (; made < 40; made++) {
		r.now += DL_SECOND / 20;
		for (int i = 0; i < 3; i++)
			step(&r, names[i], made + 1, made + 1);
	}
	r.now += 20 * DL_SECOND;
	for (int i = 0; i < 3; i++)
		for (uint64_t n = made + 1; n <= made + 400; n++) {
			r.now += DL_SECOND / 10000;
			step(&r, names[i], n, n);
		}
	for (size_t i = 0; i < 3; i++) {
		dl_sync_learner(r.s, i, &info);
		refused += info.refused[DL_REFUSED_RATE];
	}
	ok(!refused, "reports that waited for the syncer are taken, all of "
		     "them");
	for (uint64_t n = 0; n < 400; n++) {
		r.now += DL_SECOND / 20;
		for (int i = 0; i < 3; i++)
			step(&r, names[i], made + 401 + n, made + 401 + n);
	}
	step(&r, "c", made + 5000, made + 5000);
	dl_sync_learner(r.s, 2, &info);
	ok(info.refused[DL_REFUSED_RATE] == 1,
		"... and what they left of their time is not kept");
	rig_release(&r);
}

static void test_norms(void)
{
	const struct dl_sync_action *a;
	struct dl_sync_event ev;
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 40);
	for (uint64_t i = 1; i <= DL_NORMS_NEEDED; i++)
		push(&r, "a", i, 40);
	ev = good_push(&r, "b", 1, 40);
	ev.norm = 16;
	tell(&r, ev);
	a = said(&r, DL_ACT_TAKEN, "b");
	ok(a->scale == 0.5, "a delta above 8 times the median is scaled to it");
	ev = good_push(&r, "b", 2, 40);
	ev.norm = 100.5;
	tell(&r, ev);
	a = said(&r, DL_ACT_TAKEN, "b");
	ok(a->refusal == DL_REFUSED_NORM, "above 100 times it is refused");
	ev = good_push(&r, "b", 3, 40);
	ev.norm = 100.5;
	ev.steps = 28;
	tell(&r, ev);
	a = said(&r, DL_ACT_TAKEN, "b");
	ok(!a->refusal && a->scale == 1,
		"many steps may go as far as many steps go");
	rig_release(&r);
}

/* Norms that do not rise with the steps: those of steps that go to and fro. */
static void test_norms_of_few_steps(void)
{
	const struct dl_sync_action *a;
	struct dl_sync_event ev;
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 400);
	for (uint64_t i = 1; i <= DL_NORMS_NEEDED; i++) {
		ev = good_push(&r, "a", i, 400);
		ev.steps = 40;
		tell(&r, ev);
		merged(&r, 0);
	}
	ev = good_push(&r, "b", 1, 400);
	ev.steps = 1;
	tell(&r, ev);
	a = said(&r, DL_ACT_TAKEN, "b");
	ok(!a->refusal && a->scale == 1,
		"a push of few steps may be as long as a usual one");
	rig_release(&r);
}

static void test_identity(void)
{
	struct dl_sync_saved saved;
	struct dl_sync_event ev;
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	ok(push(&r, "a", 1, 4) == DL_TAKEN_ROUND &&
			said(&r, DL_ACT_RELEASE, NULL)->push == 2,
		"a copy of a push in the round says so and is let go");
	push(&r, "b", 1, 4);
	ok(said(&r, DL_ACT_MERGE, NULL)->parts == 2, "... and counts once");
	dl_sync_save(r.s, 0, &saved);
	merged(&r, 0);
	ok(said(&r, DL_ACT_TAKEN, "a")->taken == DL_TAKEN_SETTLED &&
			said(&r, DL_ACT_TAKEN, "a")->seq == 1,
		"after the merge it is settled");
	ok(push(&r, "a", 1, 4) == DL_TAKEN_AGAIN, "and known again later");
	ok(push(&r, "a", 2, 5) == DL_TAKEN_WAITING, "the next one waits");
	dl_sync_free(r.s);

	r.s = dl_sync_restore(&r.config, &saved);
	join_with(&r, "a", 5, 5, none);
	ok(dl_sync_taken(r.s, "a", 'a', 0) == 1,
		"what was merged is known to a restored syncer");
	ok(said(&r, DL_ACT_TAKEN, "a")->taken == DL_TAKEN_SETTLED &&
			said(&r, DL_ACT_TAKEN, "a")->seq == 1,
		"and said to who comes back");
	ok(push(&r, "a", 1, 4) == DL_TAKEN_AGAIN, "it is not merged again");
	ev = good_push(&r, "a", 2, 5);
	ev.base = (struct dl_version){1, 0};
	tell(&r, ev);
	ok(said(&r, DL_ACT_TAKEN, "a")->taken == DL_TAKEN_WAITING,
		"what was only pending is taken anew");
	dl_sync_saved_release(&saved);
	rig_release(&r);
}

static void test_epochs(void)
{
	struct dl_version old = {1, 1}, lost = {1, 2};
	struct dl_sync_saved saved;
	struct dl_sync_event ev;
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	merged(&r, 0);
	dl_sync_save(r.s, UINT32_MAX, &saved);
	dl_sync_free(r.s);
	r.s = dl_sync_restore(&r.config, &saved);
	ok(!dl_version_cmp(
		   dl_sync_version(r.s, 0), (struct dl_version){2, 1}) &&
			!dl_version_cmp(dl_sync_origin(r.s, 0), old),
		"a restored syncer goes on in the next epoch");
	join_with(&r, "a", 4, 4, &old);
	ok(!said(&r, DL_ACT_GLOBAL, "a"), "who has the origin is up to date");
	join_with(&r, "b", 4, 4, &lost);
	ok(said(&r, DL_ACT_GLOBAL, "b") != NULL,
		"who has a lost version is not");
	walk(&r, "a", 4, 8);
	push(&r, "a", 2, 8);
	merged(&r, 0);
	ok(!dl_version_cmp(dl_sync_origin(r.s, 0), dl_sync_version(r.s, 0)),
		"after a merge the origin is no name of the version");
	join_with(&r, "c", 4, 4, &old);
	ok(said(&r, DL_ACT_GLOBAL, "c") != NULL, "... nor up to date");
	walk(&r, "a", 8, 12);
	ev = good_push(&r, "a", 3, 12);
	ev.base = lost;
	tell(&r, ev);
	ok(said(&r, DL_ACT_TAKEN, "a")->refusal == DL_REFUSED_NOT,
		"what was made on a lost version counts");
	dl_sync_saved_release(&saved);
	rig_release(&r);
}

/* The clock that one comes back with to a syncer that restarted. */
static uint64_t returns(struct rig *r, const char *name, uint64_t clock)
{
	join_with(r, name, clock, 4, none);
	return said(r, DL_ACT_WELCOME, name)->step;
}

static void test_return(void)
{
	const uint64_t lie = UINT64_MAX - 1, saved_clock = 4, some = 64;
	struct dl_sync_saved saved;
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 4);
	join(&r, "c");
	push(&r, "a", 1, 4);
	push(&r, "b", 1, 4);
	merged(&r, 0);
	dl_sync_save(r.s, UINT32_MAX, &saved);
	dl_sync_free(r.s);
	r.s = dl_sync_restore(&r.config, &saved);
	ok(returns(&r, "a", lie) == saved_clock + some,
		"what one alone says of a time without a syncer is little");
	ok(returns(&r, "b", 1000) == 1000, "of two the lower is believed");
	ok(returns(&r, "c", 5000) == 5000, "and of three the middle one");
	step(&r, "c", 5001, 5);
	ok(dl_sync_clock(r.s) == 5001, "from there the clock goes on");
	plain(&r, DL_EV_LEAVE, "a");
	ok(returns(&r, "a", lie) < 6000, "a lie told twice is still none");
	ok(returns(&r, "d", lie) == 5001, "who was never here gets the run's");
	dl_sync_free(r.s);
	r.s = dl_sync_restore(&r.config, &saved);
	ok(returns(&r, "a", 3) == saved_clock, "a clock never goes back");
	dl_sync_saved_release(&saved);
	rig_release(&r);

	rig_init(&r);
	rig_start(&r);
	join(&r, "a");
	walk(&r, "a", 0, 4);
	push(&r, "a", 1, 4);
	merged(&r, 0);
	dl_sync_save(r.s, UINT32_MAX, &saved);
	dl_sync_free(r.s);
	r.s = dl_sync_restore(&r.config, &saved);
	ok(returns(&r, "a", 1000) == 1000,
		"one that has always been alone is believed");
	dl_sync_saved_release(&saved);
	rig_release(&r);
}

static void test_global_step(void)
{
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 4);
	push(&r, "a", 1, 4);
	plain(&r, DL_EV_WANT, "b");
	ok(said(&r, DL_ACT_GLOBAL, "b")->step == 0 &&
			said(&r, DL_ACT_GLOBAL, "b")->version.number == 0,
		"during a merge the values are still the round's before");
	merged(&r, 0);
	ok(said(&r, DL_ACT_GLOBAL, "b")->step == 4 &&
			said(&r, DL_ACT_GLOBAL, "b")->version.number == 1,
		"after it they are its own");
	rig_release(&r);
}

static void test_welcome(void)
{
	struct dl_sync_learner_info a;
	struct rig r;

	rig_init(&r);
	rig_pair(&r, 10);
	join(&r, "c");
	ok(said(&r, DL_ACT_WELCOME, "c")->step == 10,
		"a newcomer gets the run's clock");
	ok(said(&r, DL_ACT_GLOBAL, "c") != NULL, "and the values");
	plain(&r, DL_EV_LEAVE, "b");
	walk(&r, "a", 10, 12);
	join_with(&r, "b", 15, 15, none);
	ok(said(&r, DL_ACT_WELCOME, "b")->step == 15,
		"one that was cut off keeps the clock it has earned");
	ok(said(&r, DL_ACT_OPEN, "b") != NULL,
		"and hears of the round it is missed in");
	join_with(&r, "a", 99, 12, none);
	ok(said(&r, DL_ACT_WELCOME, "a")->step == 12, "but not one it has not");
	dl_sync_learner(r.s, 0, &a);
	ok(!a.refused[DL_REFUSED_CLOCK],
		"which is no lie: its welcome was lost");
	rig_release(&r);
}

static void test_end(void)
{
	struct rig r;

	rig_init(&r);
	r.config.quorum = 2;
	rig_pair(&r, 4);
	plain(&r, DL_EV_END, NULL);
	ok(said(&r, DL_ACT_END, "a") && said(&r, DL_ACT_END, "b"),
		"the end: everybody is asked to push");
	push(&r, "a", 1, 4);
	plain(&r, DL_EV_DRAINED, "a");
	ok(!count(&r, DL_ACT_MERGE), "and waited for");
	ok(dl_sync_wake(r.s) == r.now + r.config.end_ns, "until the deadline");
	plain(&r, DL_EV_DRAINED, "b");
	ok(said(&r, DL_ACT_MERGE, NULL)->parts == 1,
		"one last round merges what came, whatever the quorum");
	ok(push(&r, "b", 1, 4) == DL_TAKEN_REFUSED &&
			said(&r, DL_ACT_TAKEN, "b")->refusal == DL_REFUSED_END,
		"what comes after it is refused");
	merged(&r, 0);
	ok(said(&r, DL_ACT_GLOBAL, "a")->final &&
			said(&r, DL_ACT_GLOBAL, "b")->final,
		"final values go out");
	tell(&r, (struct dl_sync_event){.kind = DL_EV_APPLIED,
			 .learner = "a",
			 .version = {1, 1}});
	ok(!count(&r, DL_ACT_DONE), "all must have them");
	tell(&r, (struct dl_sync_event){.kind = DL_EV_APPLIED,
			 .learner = "b",
			 .version = {1, 1}});
	ok(said(&r, DL_ACT_BYE, "a") && said(&r, DL_ACT_BYE, "b") &&
			count(&r, DL_ACT_DONE) == 1,
		"then the run is over");
	join(&r, "c");
	ok(said(&r, DL_ACT_BYE, "c") != NULL, "as who comes now is told");
	rig_release(&r);

	rig_init(&r);
	rig_pair(&r, 4);
	plain(&r, DL_EV_END, NULL);
	r.now += r.config.end_ns;
	plain(&r, DL_EV_TIME, NULL);
	ok(said(&r, DL_ACT_GLOBAL, "a")->final, "nothing came: still an end");
	r.now += r.config.end_ns;
	plain(&r, DL_EV_TIME, NULL);
	ok(count(&r, DL_ACT_DONE) == 1, "nobody answers: still an end");
	rig_release(&r);
}

/* A restored core, to which a has come back and b has not, is to end. */
static void rig_end_restored(struct rig *r)
{
	struct dl_sync_saved saved;

	rig_init(r);
	rig_pair(r, 4);
	dl_sync_save(r->s, UINT32_MAX, &saved);
	dl_sync_free(r->s);
	r->s = dl_sync_restore(&r->config, &saved);
	dl_sync_saved_release(&saved);
	join_with(r, "a", 4, 4, none);
	plain(r, DL_EV_END, NULL);
	plain(r, DL_EV_DRAINED, "a");
}

static void test_end_restored(void)
{
	struct rig r;

	rig_end_restored(&r);
	ok(!count(&r, DL_ACT_GLOBAL) &&
			dl_sync_wake(r.s) == r.now + DL_RETURN_NS,
		"after a restart the end waits for those who were there");
	join_with(&r, "b", 4, 4, none);
	ok(said(&r, DL_ACT_END, "b") != NULL, "who comes is told");
	plain(&r, DL_EV_DRAINED, "b");
	ok(said(&r, DL_ACT_GLOBAL, "b")->final, "and gets the final values");
	rig_release(&r);

	rig_end_restored(&r);
	r.now += DL_RETURN_NS;
	plain(&r, DL_EV_TIME, NULL);
	ok(said(&r, DL_ACT_GLOBAL, "a")->final, "but not for long");
	rig_release(&r);
}

static void test_budgets(void)
{
	struct dl_sync_info info;
	struct rig r;

	rig_init(&r);
	r.config.budget_steps = 6;
	rig_pair(&r, 5);
	dl_sync_info(r.s, &info);
	ok(!info.ending, "within the budget of steps");
	step(&r, "a", 6, 6);
	ok(count(&r, DL_ACT_END) == 2, "at it the run ends");
	rig_release(&r);

	rig_init(&r);
	r.config.budget_tokens = 110;
	rig_pair(&r, 5);
	dl_sync_info(r.s, &info);
	ok(!info.ending && info.tokens == 100, "tokens of all are counted");
	step(&r, "a", 6, 6);
	ok(count(&r, DL_ACT_END) == 2, "at that budget the run ends");
	rig_release(&r);
}

static void test_shards(void)
{
	struct rig r;

	rig_init(&r);
	dl_sync_config_default(&r.config, 4);
	r.config.schedule.h = 4;
	r.config.min_h = 0;
	r.config.shards = 2;
	r.config.shard = 1;
	rig_start(&r);
	join(&r, "a");
	ok(count(&r, DL_ACT_GLOBAL) == 2, "a shard sends its own fragments");
	walk(&r, "a", 0, 1);
	ok(said(&r, DL_ACT_OPEN, "a") &&
			said(&r, DL_ACT_OPEN, "a")->fragment == 1,
		"opens rounds on them");
	walk(&r, "a", 1, 2);
	ok(!count(&r, DL_ACT_OPEN), "and on no others");
	rig_release(&r);
}

int main(void)
{
	test_due();
	test_opening();
	test_quorum();
	test_weights();
	test_grace();
	test_late();
	test_below_quorum();
	test_stall();
	test_stall_enlisted();
	test_mute_member();
	test_held_return();
	test_refusals();
	test_hoard();
	test_barred();
	test_refused();
	test_reports();
	test_backlog();
	test_norms();
	test_norms_of_few_steps();
	test_identity();
	test_epochs();
	test_return();
	test_global_step();
	test_welcome();
	test_end();
	test_end_restored();
	test_budgets();
	test_shards();
	return done_testing();
}
