#include "cmd/sim-fleet-learners.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/sim-options.h"

/* "MEAN+SPREAD": evenly from MEAN - SPREAD to MEAN + SPREAD. */
static void spread_times(struct dl_fleet_learner *l, uint32_t n,
	const char *mean_text, const char *spread_text)
{
	int64_t mean = cmd_period("--step-time", mean_text);
	int64_t spread = cmd_duration("--step-time", spread_text);

	if (spread >= mean)
		cmd_usage("--step-time %s+%s: the spread is too large",
			mean_text, spread_text);
	for (uint32_t m = 0; m < n; m++)
		l[m].step_ns = n < 2 ? mean
				     : mean - spread +
					       (int64_t)(2.0 * (double)spread *
							 m / (n - 1));
}

/* "T,T,...": in turn. */
static void list_times(struct dl_fleet_learner *l, uint32_t n, char *text)
{
	uint32_t given = 0;
	char *rest = text, *item;

	while (given < n && (item = strsep(&rest, ",")))
		l[given++].step_ns = cmd_period("--step-time", item);
	for (uint32_t m = given; m < n; m++)
		l[m].step_ns = l[m - given].step_ns;
}

static void set_times(
	struct dl_fleet_learner *l, uint32_t n, const char *step_time)
{
	char *text = dl_strdup(step_time), *plus = strchr(text, '+');

	if (plus) {
		*plus = '\0';
		spread_times(l, n, text, plus + 1);
	} else {
		list_times(l, n, text);
	}
	free(text);
}

/* How long a fragment of so many bits takes. */
static int64_t takes(double bits, double rate)
{
	double ns = bits / rate * DL_SECOND;

	if (ns > (double)INT64_MAX / 1e6)
		cmd_usage("--link: a fragment takes %.0f years",
			ns / DL_SECOND / (365.25 * 86400));
	return (int64_t)ns;
}

/* Sites have delays and links in turn. */
static void connect(const struct fleet_learners *l, uint32_t fragments,
	struct dl_fleet_learner *x)
{
	double values = l->values / fragments;
	uint32_t site = x->site;

	if (l->delays.n)
		x->delay_ns = (int64_t)l->delays.item[site % l->delays.n];
	if (l->links.n) {
		double rate = l->links.item[site % l->links.n];

		x->push_ns = takes(values * sim_codec_bits(l->push), rate);
		x->global_ns = takes(values * sim_codec_bits(l->global), rate);
	}
}

struct dl_fleet_learner *fleet_learners_make(
	const struct fleet_learners *l, uint32_t fragments)
{
	uint32_t n = l->base + l->extra;
	struct dl_fleet_learner *all = dl_alloc_array(n, sizeof *all);

	for (uint32_t m = 0; m < n; m++) {
		struct dl_fleet_learner *x = &all[m];

		*x = l->each;
		x->liar = m < l->liars;
		x->site = l->sites ? m % l->sites : m;
		connect(l, fragments, x);
		if (m < l->base)
			continue;
		x->start_ns = l->from_ns;
		x->here_ns = l->here_ns;
		x->away_ns = l->away_ns;
	}
	set_times(all, n, l->step_time);
	return all;
}
