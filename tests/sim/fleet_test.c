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

enum { LEARNERS_MOST = 6, SEEDS = 1000 };

static const int64_t ms = DL_SECOND / 1000;

static int64_t between(struct dl_rng *r, int64_t low, int64_t high)
{
	return low + (int64_t)dl_rng_below(r, (uint64_t)(high - low + 1));
}

static int one_in(struct dl_rng *r, uint64_t n)
{
	return !dl_rng_below(r, n);
}

static void draw_learner(struct dl_rng *r, struct dl_fleet_learner *l)
{
	*l = (struct dl_fleet_learner){
		.step_ns = between(r, 50, 200) * ms,
		.jitter = dl_rng_uniform(r) * 0.3,
		.tokens = (uint64_t)between(r, 1, 1000),
		.delay_ns = between(r, 0, 100) * ms,
		.transfer_ns = between(r, 0, 50) * ms,
		.start_ns = one_in(r, 3) ? between(r, 0, 20000) * ms : 0,
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

static int64_t sometimes(struct dl_rng *r, int64_t mean)
{
	return one_in(r, 2) ? 0 : mean;
}

static void draw_troubles(struct dl_rng *r, struct dl_fleet_config *c)
{
	c->death_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->drain_ns = sometimes(r, between(r, 10, 60) * DL_SECOND);
	c->cut_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->trainer_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->crash_ns = sometimes(r, between(r, 5, 60) * DL_SECOND);
	c->copy_fails = one_in(r, 2) ? 0 : 0.005;
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

int main(void)
{
	test_random();
	return done_testing();
}
