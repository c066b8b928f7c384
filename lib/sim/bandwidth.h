/*
 * Bandwidth: what crosses a site's link, and how much of the time is left for
 * steps when that takes longer than what it hides behind. Closed forms, no
 * randomness; dl-sim(1) derives each.
 *
 * A site exchanges something every few steps. An exchange takes its bits, one
 * after another, over the link's speed, and a fixed time that no link shortens.
 * So much of it hides behind training; the rest is exposed, and added to the
 * steps as if learners waited.
 */
#ifndef DL_SIM_BANDWIDTH_H
#define DL_SIM_BANDWIDTH_H

#include <stdint.h>

enum dl_bandwidth_system {
	DL_DATA_PARALLEL, /* gradients each step, behind the backward pass */
	DL_DILOCO,	  /* the whole model every H steps, behind nothing */
	DL_STREAMING,	  /* fragments, all-reduced, behind tau steps */
	DL_DECOUPLED,	  /* fragments, through a syncer, behind tau steps */
	DL_BANDWIDTH_SYSTEMS
};
extern const char *const dl_bandwidth_names[DL_BANDWIDTH_SYSTEMS];

struct dl_bandwidth_config {
	double values;	 /* of the model */
	double largest;	 /* fragment, in mean ones: 1 or more */
	double gradient; /* bits of a gradient's value, in data-parallel */
	double up, down; /* bits of a value pushed, and of a global one */
	uint32_t sites, learners; /* learners a site */
	int apart;		  /* the syncer is at none of the sites */
	uint32_t fragments;	  /* P */
	uint64_t h, tau;
	double backward; /* share of a step that is the backward pass */
	/* Seconds: of a step; of a message, each way; of copies and merge of a
	 * fragment. */
	double step, latency, merge;
};

/* With which the paper's figures come out. */
void dl_bandwidth_config_default(struct dl_bandwidth_config *c);

/* What a site exchanges, and when. */
struct dl_traffic {
	double serial; /* bits of the largest exchange, one after another */
	double busy;   /* bits of a mean one, in the busier direction */
	double fixed;  /* seconds of an exchange, whatever the link */
	double hidden; /* seconds of it that cost nothing */
	double exchanges, period; /* so many in so many seconds of steps */
	double together; /* exchanges under way that a wait helps at once */
	double peak;	 /* most bits that are due in a step, over its time */
};
void dl_traffic_of(struct dl_traffic *t, const struct dl_bandwidth_config *c,
	enum dl_bandwidth_system system);

/* Rates are bits a second, each way; utilisations are above 0, at most 1. */

/* Seconds of an exchange that has the link for itself. */
double dl_traffic_takes(const struct dl_traffic *t, double rate);
/* Share of the time spent on steps, were that so of all; the paper's. */
double dl_traffic_utilisation(const struct dl_traffic *t, double rate);
/* The same on a link that carries exchanges one after another, so that they
 * wait for each other, but a wait for one gives the others time, too. */
double dl_traffic_carried(const struct dl_traffic *t, double rate);
/* Rates for such utilisations; infinite when latency alone is too much. */
double dl_traffic_need(const struct dl_traffic *t, double utilisation);
double dl_traffic_sustained(const struct dl_traffic *t, double utilisation);
/* Bits a second while nothing is exposed. */
double dl_traffic_mean(const struct dl_traffic *t);
/* How many times further apart than asked for exchanges are, when they wait for
 * the link and learners do not. */
double dl_traffic_stretch(const struct dl_traffic *t, double rate);

#endif
