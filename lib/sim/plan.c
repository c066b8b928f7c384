#include "sim/plan.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "sim/fleet.h"

/* Rounds of a fragment that a fleet is looked at for. */
enum { ROUNDS = 4, TOKENS = 1000 };

void dl_proposal_failures(
	struct dl_proposal *p, const struct dl_plan_given *given)
{
	struct dl_goodput_config c = given->machines;
	struct dl_goodput_result r;

	c.learners = p->learners;
	c.quorum = p->quorum;
	c.step = given->traffic.step;
	dl_goodput_run(&c, &r);
	p->goodput = r.share[DL_GOODPUT_USEFUL];
	p->uptime = r.uptime;
}

static struct dl_traffic traffic_of(
	const struct dl_proposal *p, const struct dl_plan_given *given)
{
	struct dl_bandwidth_config c = given->traffic;
	struct dl_traffic t;

	c.sites = p->learners;
	if (given->sites && given->sites < c.sites)
		c.sites = given->sites;
	c.learners = (p->learners + c.sites - 1) / c.sites;
	c.fragments = p->fragments;
	c.h = p->h;
	c.tau = p->tau;
	c.up = p->push;
	c.down = p->global;
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	return t;
}

int dl_proposal_traffic(
	struct dl_proposal *p, const struct dl_plan_given *given)
{
	struct dl_traffic t = traffic_of(p, given);

	p->need = dl_traffic_sustained(&t, 1);
	p->mean = dl_traffic_mean(&t);
	return p->need <= given->link;
}

void dl_proposal_rounds(
	struct dl_proposal *p, const struct dl_plan_given *given)
{
	struct dl_traffic t = traffic_of(p, given);
	struct dl_fleet_learner *l = dl_alloc_array(p->learners, sizeof *l);
	struct dl_fleet_config c;
	struct dl_fleet_result r;
	const struct dl_account *a = &r.total.account;

	dl_fleet_config_default(&c, p->fragments);
	c.sync.schedule.h = p->h;
	c.sync.min_h = p->h / 2;
	c.sync.quorum = p->quorum;
	c.sync.tau = p->tau;
	c.merge_ns = (int64_t)(given->traffic.merge * DL_SECOND);
	c.rounds = (uint64_t)ROUNDS * p->fragments;
	c.seed = given->machines.seed;
	c.learners = p->learners;
	c.learner = l;
	for (uint32_t m = 0; m < p->learners; m++) {
		l[m].step_ns = (int64_t)(given->traffic.step * DL_SECOND);
		l[m].jitter = given->jitter;
		l[m].tokens = TOKENS;
		l[m].delay_ns = (int64_t)(given->traffic.latency * DL_SECOND);
		l[m].site = m;
		l[m].push_ns = l[m].global_ns =
			(int64_t)(t.serial / 2 / given->link * DL_SECOND);
	}
	dl_fleet_run(&c, &r);
	p->participation = r.total.rounds ? (double)r.total.reported /
						    (double)r.total.rounds
					  : 0;
	p->wasted =
		a->own ? (double)(a->late + a->refused) / (double)a->own : 0;
	p->useful = p->goodput * p->uptime * (1 - p->wasted);
	dl_fleet_result_release(&r);
	free(l);
}

/* Below 0 when a comes before b. */
static int ascending(double a, double b)
{
	return (a > b) - (a < b);
}

static int compare(const void *x, const void *y)
{
	const struct dl_proposal *a = x, *b = y;
	const int order[] = {
		ascending(rint(100 * b->useful), rint(100 * a->useful)),
		ascending(rint(100 * b->participation),
			rint(100 * a->participation)),
		ascending((double)a->h, (double)b->h),
		ascending((double)a->tau, (double)b->tau),
		ascending(a->learners, b->learners),
		ascending(a->need, b->need),
		ascending(a->quorum, b->quorum),
		ascending(a->fragments, b->fragments),
		ascending(a->codec, b->codec),
	};

	for (size_t i = 0; i < sizeof order / sizeof *order; i++)
		if (order[i] != 0)
			return order[i] < 0 ? -1 : 1;
	return 0;
}

void dl_proposals_sort(struct dl_proposal *p, size_t n)
{
	qsort(p, n, sizeof *p, compare);
}
