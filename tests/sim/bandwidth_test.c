/*
 * Bandwidth: the paper's figures, and a link that is simulated exchange by
 * exchange agrees with the closed forms.
 */
#include "sim/bandwidth.h"

#include <math.h>

#include "../tap.h"

static const double G = 1e9, int4 = 4 + 16.0 / 128;

/* For 90% of the time on steps, in Gbit/s. */
static double need(const struct dl_bandwidth_config *c,
	enum dl_bandwidth_system system, double bits)
{
	struct dl_bandwidth_config with = *c;
	struct dl_traffic t;

	with.up = with.down = bits;
	dl_traffic_of(&t, &with, system);
	return dl_traffic_need(&t, 0.9) / G;
}

static void near(double is, double paper, double within, const char *what)
{
	ok(fabs(is / paper - 1) <= within,
		"%s: %.3f, in the paper %.3f (%+.1f%%)", what, is, paper,
		100 * (is / paper - 1));
}

static void test_paper(void)
{
	struct dl_bandwidth_config c;
	double parallel, bf16, narrow;

	dl_bandwidth_config_default(&c);
	parallel = need(&c, DL_DATA_PARALLEL, 16);
	bf16 = need(&c, DL_DECOUPLED, 16);
	narrow = need(&c, DL_DECOUPLED, int4);
	near(parallel, 104, 0.05, "two sites, data-parallel");
	near(bf16, 1.7, 0.05, "... decoupled, bf16");
	near(narrow, 0.43, 0.05, "... decoupled, int4");
	near(parallel / bf16, 61, 0.03, "ratio of bf16");
	near(parallel / narrow, 242, 0.03, "ratio of int4");
	c.sites = 8;
	near(need(&c, DL_DATA_PARALLEL, 16), 198, 0.01,
		"eight sites, data-parallel");
	near(need(&c, DL_DECOUPLED, int4), 0.84, 0.1,
		"... decoupled, read as int4");
}

/* Learners that wait for a fragment tau steps after it left, over a link that
 * carries one after another in each direction: the share of the time spent on
 * steps. ahead is what goes up before anything comes down. */
static double run(const struct dl_bandwidth_config *c,
	const struct dl_traffic *t, double rate)
{
	enum { STEPS = 4000, TAU_MOST = 8 };
	double now = 0, up = 0, down = 0, due[TAU_MOST + 1] = {0};
	double ahead = c->apart ? t->busy / rate : 0;
	uint64_t sent = 0;

	for (uint64_t s = 1; s <= STEPS; s++) {
		double *slot = &due[s % (c->tau + 1)];

		now = fmax(now, *slot) + c->step;
		*slot = 0;
		/* Fragment p is due at floor(p*H/P). */
		while (sent * c->h / c->fragments < s) {
			up = fmax(up, now) + ahead;
			down = fmax(down, up) + t->busy / rate;
			*slot = down + t->fixed;
			sent++;
		}
	}
	return STEPS * c->step / fmax(now, down);
}

static void test_link(void)
{
	static const struct {
		uint32_t fragments;
		uint64_t h, tau;
		int apart;
	} runs[] = {{24, 24, 2, 0}, {24, 24, 5, 1}, {24, 96, 2, 0},
		{48, 24, 3, 0}, {1, 100, 1, 0}, {3, 6, 2, 1}, {3, 6, 7, 1}};

	for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
		struct dl_bandwidth_config c;
		struct dl_traffic t;
		double rate, share, told;

		dl_bandwidth_config_default(&c);
		c.fragments = runs[i].fragments;
		c.h = runs[i].h;
		c.tau = runs[i].tau;
		c.apart = runs[i].apart;
		dl_traffic_of(&t, &c, DL_DECOUPLED);
		rate = dl_traffic_sustained(&t, 0.9);
		share = run(&c, &t, rate);
		ok(share > 0.899, "P %u, H %u, tau %u: %.2f Gbit/s carry %.3f",
			c.fragments, (unsigned)c.h, (unsigned)c.tau, rate / G,
			share);
		for (double part = 0.1; part < 3; part *= 2) {
			rate = part * dl_traffic_mean(&t);
			share = run(&c, &t, rate);
			told = dl_traffic_carried(&t, rate);
			ok(fabs(share - told) < 0.02 + 0.02 * told,
				"%.1f of the mean carry %.3f, told %.3f", part,
				share, told);
		}
	}
}

/* The paper's figure lets a fragment have the link for itself; with one each
 * step there are always two. */
static void test_queue(void)
{
	struct dl_bandwidth_config c;
	struct dl_traffic t;
	double rate;

	dl_bandwidth_config_default(&c);
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	rate = dl_traffic_need(&t, 0.9);
	ok(run(&c, &t, rate) < 0.6, "on such a link fragments queue: %.3f",
		run(&c, &t, rate));
	ok(fabs(dl_traffic_carried(&t, rate) - run(&c, &t, rate)) < 0.01,
		"as told: %.3f", dl_traffic_carried(&t, rate));
	ok(fabs(dl_traffic_stretch(&t, rate) * rate / dl_traffic_mean(&t) - 1) <
			1e-12,
		"and rounds are %.2f times as far apart without waiting",
		dl_traffic_stretch(&t, rate));
	ok(fabs(dl_traffic_mean(&t) - c.values * 16 / 24) < 1,
		"a fragment a step is %.2f Gbit/s", dl_traffic_mean(&t) / G);
}

/* A rate for a utilisation, and back. */
static void test_inverse(void)
{
	static const double share[] = {0.5, 0.8, 0.9, 0.99, 1};
	struct dl_bandwidth_config c;
	struct dl_traffic t;

	dl_bandwidth_config_default(&c);
	for (int s = 0; s < DL_BANDWIDTH_SYSTEMS; s++)
		for (int i = 0; i < 5; i++) {
			double rate;

			dl_traffic_of(&t, &c, (enum dl_bandwidth_system)s);
			rate = dl_traffic_need(&t, share[i]);
			if (isinf(rate))
				ok(s == DL_DILOCO && share[i] == 1,
					"%s never has %.2f",
					dl_bandwidth_names[s], share[i]);
			else
				ok(fabs(dl_traffic_utilisation(&t, rate) -
					   share[i]) < 1e-9,
					"%s: %.3f Gbit/s for %.2f",
					dl_bandwidth_names[s], rate / G,
					share[i]);
		}
	c.latency = 2;
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	ok(isinf(dl_traffic_need(&t, 0.9)), "no link is fast enough for that");
}

/* What each site sends, by hand. */
static void test_volumes(void)
{
	struct dl_bandwidth_config c;
	struct dl_traffic t;

	dl_bandwidth_config_default(&c);
	c.values = 2400;
	c.up = 8;
	c.down = 32;
	c.sites = 4;
	c.learners = 3;
	c.largest = 1.25;
	dl_traffic_of(&t, &c, DL_DATA_PARALLEL);
	ok(t.busy == 2400 * 16 * 1.5 && t.serial == t.busy, "gradients");
	ok(t.hidden == c.backward && t.exchanges == 1,
		"behind the backward pass");
	dl_traffic_of(&t, &c, DL_DILOCO);
	ok(t.busy == 2400 * 8 * 1.5 && t.hidden == 0, "the model, exposed");
	ok(t.peak == 24 * dl_traffic_mean(&t), "all of H steps in one");
	dl_traffic_of(&t, &c, DL_STREAMING);
	ok(t.busy == 100 * 8 * 1.5 && t.serial == 1.25 * t.busy, "a fragment");
	ok(t.peak == dl_traffic_mean(&t), "flat");
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	ok(t.busy == 100 * 3 * 0.75 * (8 + 32), "pushes and globals");
	c.apart = 1;
	dl_traffic_of(&t, &c, DL_DECOUPLED);
	ok(t.busy == 100 * 3 * 32 && t.serial == 1.25 * 100 * 3 * (8 + 32),
		"a syncer elsewhere: down is the busier way, both take time");
}

int main(void)
{
	test_paper();
	test_link();
	test_queue();
	test_inverse();
	test_volumes();
	return done_testing();
}
