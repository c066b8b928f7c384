#include "sim/bandwidth.h"

#include <math.h>

const char *const dl_bandwidth_names[DL_BANDWIDTH_SYSTEMS] = {
	"data-parallel", "diloco", "streaming", "decoupled"};

void dl_bandwidth_config_default(struct dl_bandwidth_config *c)
{
	*c = (struct dl_bandwidth_config){.values = 5e9,
		.largest = 1,
		.gradient = 16,
		.up = 16,
		.down = 16,
		.sites = 2,
		.learners = 1,
		.fragments = 24,
		.h = 24,
		.tau = 2,
		.backward = 2.0 / 3,
		.step = 1,
		.latency = 0.005,
		.merge = 0.12};
}

/* A ring over the sites: each sends 2(n-1) parts of an n-th, one after another;
 * learners of a site reduce among themselves before. */
static void all_reduce(
	struct dl_traffic *t, const struct dl_bandwidth_config *c, double bits)
{
	double sends = 2 * ((double)c->sites - 1);

	t->busy = sends / c->sites * bits;
	t->fixed = sends * c->latency;
}

/* Up, merge, down. When the sites share the syncer evenly, an n-th of
 * everything stays where it is, and what a site sends is the rest of its own
 * pushes and its part of the others' globals. */
static void through_syncer(struct dl_traffic *t,
	const struct dl_bandwidth_config *c, double values)
{
	double up = values * c->learners * c->up;
	double down = values * c->learners * c->down;
	double away = ((double)c->sites - 1) / c->sites;

	t->busy = c->apart ? fmax(up, down) : away * (up + down);
	t->serial = c->apart ? up + down : t->busy;
	t->fixed = 2 * c->latency + c->merge;
}

void dl_traffic_of(struct dl_traffic *t, const struct dl_bandwidth_config *c,
	enum dl_bandwidth_system system)
{
	double h = system == DL_DATA_PARALLEL ? 1 : (double)c->h;
	int whole = system == DL_DATA_PARALLEL || system == DL_DILOCO;
	double fragment = c->values / c->fragments;

	*t = (struct dl_traffic){.exchanges = whole ? 1 : c->fragments,
		.period = h * c->step,
		.together = 1};
	if (system == DL_DATA_PARALLEL)
		all_reduce(t, c, c->values * c->gradient);
	else if (system == DL_DILOCO)
		all_reduce(t, c, c->values * c->up);
	else if (system == DL_STREAMING)
		all_reduce(t, c, fragment * c->up);
	else
		through_syncer(t, c, fragment);
	if (system != DL_DECOUPLED)
		t->serial = t->busy;
	if (!whole)
		t->serial *= c->largest;
	t->peak = ceil(t->exchanges / h) * t->busy / c->step;
	if (!whole) {
		t->hidden = (double)c->tau * c->step;
		t->together += floor((double)c->tau * c->fragments / h);
	} else if (system == DL_DATA_PARALLEL) {
		t->hidden = c->backward * c->step;
	}
}

double dl_traffic_takes(const struct dl_traffic *t, double rate)
{
	return t->serial / rate + t->fixed;
}

static double share(const struct dl_traffic *t, double rate, double together)
{
	double exposed = fmax(dl_traffic_takes(t, rate) - t->hidden, 0);

	return t->period / (t->period + t->exchanges * exposed / together);
}

static double need(
	const struct dl_traffic *t, double utilisation, double together)
{
	double exposed = t->period * (1 / utilisation - 1) / t->exchanges;
	double left = t->hidden + exposed * together - t->fixed;

	return left > 0 ? t->serial / left : INFINITY;
}

double dl_traffic_utilisation(const struct dl_traffic *t, double rate)
{
	return share(t, rate, 1);
}

double dl_traffic_carried(const struct dl_traffic *t, double rate)
{
	return fmin(
		share(t, rate, t->together), 1 / dl_traffic_stretch(t, rate));
}

double dl_traffic_need(const struct dl_traffic *t, double utilisation)
{
	return need(t, utilisation, 1);
}

double dl_traffic_sustained(const struct dl_traffic *t, double utilisation)
{
	return fmax(need(t, utilisation, t->together),
		utilisation * dl_traffic_mean(t));
}

double dl_traffic_mean(const struct dl_traffic *t)
{
	return t->busy * t->exchanges / t->period;
}

double dl_traffic_stretch(const struct dl_traffic *t, double rate)
{
	return fmax(dl_traffic_mean(t) / rate, 1);
}
