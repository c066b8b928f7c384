/*
 * Fleets that break in every way, by the thousand: the books balance, nothing
 * counts twice, versions rise, the end comes (the rules are in lib/sim).
 * DL_FLEET_SEEDS runs more of them, DL_FLEET_SEED a single one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/rng.h"
#include "sim/fleet.h"
#include "tests/tap.h"

enum {
	LEARNERS_MOST = 6,
	SEEDS = 1000,
	LOCK_STEP_SEEDS = 200,
	KILLS = 24, /* in the first half minute of a lock-step */
};

static const int64_t ms = DL_SECOND / 1000;

static int64_t between(struct dl_rng *r, int64_t low, int64_t high)
{
	return low + (int64_t)dl_rng_below(r, (uint64_t)(high - low + 1));
}

static int one_in(struct dl_rng *r, uint64_t n)
{
	return !dl_rng_below(r, n);
}

static int64_t sometimes(struct dl_rng *r, int64_t mean)
{
	return one_in(r, 2) ? 0 : mean;
}

static void draw_learner(struct dl_rng *r, struct dl_fleet_learner *l)
{
	*l = (struct dl_fleet_learner){
		.step_ns = between(r, 50, 200) * ms,
		.jitter = dl_rng_uniform(r) * 0.3,
		.tokens = (uint64_t)between(r, 1, 1000),
		.delay_ns = between(r, 0, 100) * ms,
		.site = (uint32_t)between(r, 0, LEARNERS_MOST - 1),
		.push_ns = between(r, 0, 50) * ms,
		.global_ns = between(r, 0, 50) * ms,
		.start_ns = one_in(r, 3) ? between(r, 0, 20000) * ms : 0,
		.here_ns = one_in(r, 4) ? between(r, 5000, 40000) * ms : 0,
		.away_ns = between(r, 0, 5000) * ms,
	};
}

static void draw_rules(struct dl_rng *r, struct dl_fleet_config *c)
{
	struct dl_sync_config *s = &c->sync;

	s->schedule.h = (uint64_t)between(r, 1, 24);
	s->min_h = s->schedule.h / 2;
	s->tau = (uint64_t)between(r, 0, 3);
	s->quorum = (uint32_t)between(r, 1, c->learners);
	s->grace = (enum dl_grace)dl_rng_below(r, 3);
	s->grace_ns = between(r, 0, 500) * ms;
	s->late = (enum dl_late)dl_rng_below(r, 3);
	s->below = (enum dl_below)dl_rng_below(r, 2);
	s->below_ns = between(r, 0, 5000) * ms;
	s->stall_ns = between(r, 1000, 10000) * ms;
	s->end_ns = between(r, 1000, 20000) * ms;
	c->apply = (enum dl_apply)dl_rng_below(r, 3);
	c->alpha = dl_rng_uniform(r);
	c->wait = one_in(r, 6);
	c->merge_ns = between(r, 0, 300) * ms;
}

static void draw_troubles(struct dl_rng *r, struct dl_fleet_config *c)
{
	c->death_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->drain_ns = sometimes(r, between(r, 10, 60) * DL_SECOND);
	c->cut_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->trainer_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->crash_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->copy_fails = one_in(r, 2) ? 0 : 0.005;
	c->regroup_ns = one_in(r, 6) ? between(r, 0, 3000) * ms : 0;
	c->gather_ns = between(r, 0, 3000) * ms;
	c->join_ns = between(r, 0, 2000) * ms;
	c->spread = dl_rng_uniform(r) * 0.2;
	c->detect_ns = between(r, 0, 2000) * ms;
	c->down_ns = between(r, 0, 10000) * ms;
	c->cut_for_ns = between(r, 0, 10000) * ms;
	c->restart_ns = between(r, 0, 5000) * ms;
	c->load_ns = between(r, 0, 2000) * ms;
	c->calm_end = !one_in(r, 4);
	c->time_ns = 60 * DL_SECOND;
}

static void run_random(uint64_t seed, struct dl_fleet_result *out)
{
	struct dl_rng r = {.key = dl_rng_key(seed, 1)};
	struct dl_fleet_learner learner[LEARNERS_MOST];
	struct dl_fleet_config c;

	dl_fleet_config_default(&c, (uint32_t)between(&r, 1, 8));
	c.seed = seed;
	c.learner = learner;
	c.learners = (uint32_t)between(&r, 1, LEARNERS_MOST);
	c.syncers = one_in(&r, 4) ? 2 : 1;
	draw_rules(&r, &c);
	draw_troubles(&r, &c);
	for (uint32_t m = 0; m < c.learners; m++)
		draw_learner(&r, &learner[m]);
	learner[0].liar = c.learners > 1 && one_in(&r, 3);
	dl_fleet_run(&c, out);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t n;

	if (!text || dl_parse_u64(text, 0, UINT64_MAX, &n))
		return otherwise;
	return n;
}

static void test_random(void)
{
	uint64_t seeds = from_environment("DL_FLEET_SEEDS", SEEDS), bad = 0;
	uint64_t only = from_environment("DL_FLEET_SEED", 0);
	uint64_t merged = 0;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct dl_fleet_result r;

		if (only && seed != only)
			continue;
		run_random(seed, &r);
		if (r.fault[0] && bad++ < 10)
			printf("# seed %llu: %s\n", (unsigned long long)seed,
				r.fault);
		merged += r.total.account.merged;
		dl_fleet_result_release(&r);
	}
	ok(!bad, "%llu random fleets keep every rule (%llu do not)",
		(unsigned long long)seeds, (unsigned long long)bad);
	ok(merged > 0, "and merge what they learn");
}

/*
 * Lock-step for all, while processes die and are replaced, many at once, some
 * leave in order and come back, and other things break now and then. It goes
 * on: the end comes by merges, not by time.
 */
static int lock_step_goes_on(uint64_t seed, char *fault, size_t size)
{
	struct dl_rng r = {.key = dl_rng_key(seed, 2)};
	struct dl_fleet_learner learner[LEARNERS_MOST];
	struct dl_fleet_kill kill[KILLS];
	struct dl_fleet_config c;
	struct dl_fleet_result out;
	uint64_t h;

	dl_fleet_config_default(&c, (uint32_t)between(&r, 1, 8));
	c.seed = seed;
	c.learner = learner;
	c.learners = (uint32_t)between(&r, 2, LEARNERS_MOST);
	draw_rules(&r, &c);
	c.wait = 1;
	c.sync.quorum = c.learners;
	c.sync.below = DL_BELOW_WAIT;
	c.detect_ns = between(&r, 0, 2000) * ms;
	c.cut_ns = sometimes(&r, 60 * DL_SECOND);
	c.trainer_ns = sometimes(&r, 60 * DL_SECOND);
	c.crash_ns = sometimes(&r, 60 * DL_SECOND);
	for (uint32_t m = 0; m < c.learners; m++)
		draw_learner(&r, &learner[m]);
	for (c.kills = 0; c.kills < KILLS; c.kills++)
		kill[c.kills] = (struct dl_fleet_kill){
			.learner = (uint32_t)dl_rng_below(&r, c.learners),
			.at_ns = between(&r, 1000, 30000) * ms,
			.down_ns = between(&r, 0, 10000) * ms,
		};
	c.kill = kill;
	h = c.sync.schedule.h;
	c.rounds = c.sync.schedule.fragments * (1000 / h + 1);
	c.time_ns = 10000 * DL_SECOND;
	dl_fleet_run(&c, &out);
	snprintf(fault, size, "%s", out.fault);
	if (!fault[0] && out.merges < c.rounds)
		snprintf(fault, size, "hangs after %llu merges",
			(unsigned long long)out.merges);
	dl_fleet_result_release(&out);
	return !fault[0];
}

static void test_lock_step(void)
{
	uint64_t seeds = from_environment("DL_FLEET_SEEDS", LOCK_STEP_SEEDS);
	uint64_t only = from_environment("DL_FLEET_SEED", 0), bad = 0;
	char fault[200];

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		if (only && seed != only)
			continue;
		if (!lock_step_goes_on(seed, fault, sizeof fault) && bad++ < 10)
			printf("# seed %llu: %s\n", (unsigned long long)seed,
				fault);
	}
	ok(!bad, "%llu fleets in lock-step go on after deaths (%llu do not)",
		(unsigned long long)seeds, (unsigned long long)bad);
}

/* Four learners of very different speeds for 200 s, undisturbed. */
static void run_mixed(enum dl_late late, enum dl_apply apply, uint32_t syncers,
	struct dl_fleet_result *out)
{
	static const int64_t step_ms[] = {100, 130, 200, 400};
	struct dl_fleet_learner learner[4];
	struct dl_fleet_config c;

	dl_fleet_config_default(&c, 12);
	c.learner = learner;
	c.learners = 4;
	c.syncers = syncers;
	c.sync.late = late;
	c.apply = apply;
	c.time_ns = 200 * DL_SECOND;
	for (uint32_t m = 0; m < c.learners; m++)
		learner[m] = (struct dl_fleet_learner){
			.step_ns = step_ms[m] * ms,
			.jitter = 0.1,
			.tokens = 100,
			.delay_ns = 10 * ms,
			.site = m,
			.push_ns = 5 * ms,
			.global_ns = 5 * ms,
		};
	dl_fleet_run(&c, out);
}

/* A step of the slowest takes longer than the grace, so that some of its pushes
 * are late. */
static int nobody_starves(const struct dl_fleet_result *r)
{
	for (int m = 0; m < 4; m++)
		if (3 * r->learner[m].account.merged <
			r->learner[m].account.own)
			return 0;
	return 1;
}

static void test_mixed(void)
{
	static const char *const lates[] = {"drop", "next", "now"};
	static const char *const applies[] = {"overwrite", "carry", "blend"};

	for (int i = 0; i < 9; i++) {
		enum dl_late late = (enum dl_late)(i / 3);
		enum dl_apply apply = (enum dl_apply)(i % 3);
		struct dl_fleet_result r;

		run_mixed(late, apply, i % 2 ? 2 : 1, &r);
		ok(!r.fault[0], "%s, %s: every rule kept%s%s", lates[i / 3],
			applies[i % 3], r.fault[0] ? ": " : "", r.fault);
		ok(r.total.clock >= 1900, "... the clock follows the fastest");
		ok(nobody_starves(&r), "... nobody starves");
		ok(!r.total.account.lost && !r.total.account.out,
			"... nothing is lost");
		ok(late == DL_LATE_DROP || !r.total.account.late,
			"... nor wasted, unless late pushes are dropped");
		ok(apply != DL_APPLY_CARRY || !r.total.account.overwritten,
			"... nor overwritten, if it is carried");
		dl_fleet_result_release(&r);
	}
}

int main(void)
{
	test_mixed();
	test_lock_step();
	test_random();
	return done_testing();
}
