/*
 * Plans: each figure is that of the model it comes from, and the best is first.
 */
#include "sim/plan.h"

#include <math.h>

#include "../tap.h"

static struct dl_plan_given given;
static const struct dl_proposal usual = {.learners = 8,
	.quorum = 1,
	.fragments = 24,
	.h = 24,
	.tau = 2,
	.push = 16,
	.global = 16};

static void setup(void)
{
	dl_goodput_config_default(&given.machines);
	dl_bandwidth_config_default(&given.traffic);
	given.machines.chips = 150e3;
	given.machines.time = 86400;
	given.link = 10e9;
	given.jitter = 0.05;
}

static void test_failures(void)
{
	struct dl_goodput_config c = given.machines;
	struct dl_goodput_result r;
	struct dl_proposal p = usual;

	dl_proposal_failures(&p, &given);
	c.learners = 8;
	c.step = 1;
	dl_goodput_run(&c, &r);
	ok(p.goodput == r.share[DL_GOODPUT_USEFUL] && p.uptime == r.uptime,
		"goodput %.3f, uptime %.3f", p.goodput, p.uptime);
	p.quorum = 8;
	dl_proposal_failures(&p, &given);
	ok(p.goodput == r.share[DL_GOODPUT_USEFUL] && p.uptime < r.uptime,
		"all of them are up less often: %.3f", p.uptime);
}

static void test_traffic(void)
{
	struct dl_bandwidth_config c = given.traffic;
	struct dl_traffic t;
	struct dl_proposal p = usual;
	int fits;

	c.sites = 8;
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	ok(dl_proposal_traffic(&p, &given), "the link will do");
	ok(p.need == dl_traffic_sustained(&t, 1) &&
			p.mean == dl_traffic_mean(&t),
		"a site a learner: %.3g Gbit/s", p.need / 1e9);
	c.sites = 3;
	c.learners = 3;
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	given.sites = 3;
	fits = dl_proposal_traffic(&p, &given);
	ok(!fits && p.need == dl_traffic_sustained(&t, 1),
		"three sites, up to three learners each: %.3g Gbit/s",
		p.need / 1e9);
	given.sites = 100;
	dl_proposal_traffic(&p, &given);
	ok(p.need < 10e9, "never more sites than learners");
	given.sites = 0;
}

static void test_rounds(void)
{
	struct dl_proposal p = usual, late = usual;

	dl_proposal_failures(&p, &given);
	dl_proposal_rounds(&p, &given);
	ok(p.participation > 0.99 && p.wasted < 0.01,
		"an overlap of two steps lets all take part: %.3f",
		p.participation);
	ok(fabs(p.useful - p.goodput * p.uptime * (1 - p.wasted)) < 1e-12,
		"useful: %.3f", p.useful);
	late.tau = 0;
	dl_proposal_failures(&late, &given);
	dl_proposal_rounds(&late, &given);
	ok(late.participation < 0.9 && late.useful < p.useful,
		"without it some are late: %.3f", late.participation);
}

static void test_order(void)
{
	struct dl_proposal p[] = {
		{.learners = 8, .h = 24, .useful = 0.80, .participation = 1},
		{.learners = 8, .h = 48, .useful = 0.904, .participation = 1},
		{.learners = 4, .h = 24, .useful = 0.896, .participation = 1},
		{.learners = 2, .h = 24, .useful = 0.90, .participation = 0.5},
		{.learners = 2, .h = 24, .useful = 0.90, .participation = 1},
	};
	static const uint32_t best[] = {2, 4, 8, 2, 8};

	dl_proposals_sort(p, 5);
	for (int i = 0; i < 5; i++)
		ok(p[i].learners == best[i], "place %d", i + 1);
	ok(p[2].h == 48 && p[3].participation < 1 && p[4].useful < 0.85,
		"percents first, then participation, H and learners");
}

int main(void)
{
	setup();
	test_failures();
	test_traffic();
	test_rounds();
	test_order();
	return done_testing();
}
