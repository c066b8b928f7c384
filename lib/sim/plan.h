/*
 * The question in reverse: given machines, a link and a model, what comes of
 * so many learners, such a quorum, fragments, H, tau and codecs. Goodput and
 * uptime are those of sim/goodput.h, bandwidth that of sim/bandwidth.h, and
 * participation that of a fleet (sim/fleet.h) whose members stay.
 */
#ifndef DL_SIM_PLAN_H
#define DL_SIM_PLAN_H

#include <stddef.h>

#include "sim/bandwidth.h"
#include "sim/goodput.h"

/* What is given; what a proposal chooses is set in copies. */
struct dl_plan_given {
	struct dl_goodput_config machines;
	struct dl_bandwidth_config traffic;
	uint32_t sites; /* at most; 0: every learner is a site */
	double link;	/* of a site, bits a second each way */
	double jitter;	/* deviation of a step's time, relative */
};

struct dl_proposal {
	uint32_t learners, quorum, fragments;
	uint64_t h, tau;
	unsigned codec; /* the caller's name for these bits of a value: */
	double push, global;
	/* Shares of the chip time that is useful despite failures, and of the
	 * time in which a quorum trains. */
	double goodput, uptime;
	double need, mean; /* bits a second */
	/* Shares of the members of a round that report in time, and of steps
	 * that are not merged for being late. */
	double participation, wasted;
	double useful; /* goodput uptime (1 - wasted) */
};

/* Fill in what their names say, from the choice and what is given. */
void dl_proposal_failures(
	struct dl_proposal *p, const struct dl_plan_given *given);
/* 0 when not even waiting for it makes the link carry everything in time. */
int dl_proposal_traffic(
	struct dl_proposal *p, const struct dl_plan_given *given);
/* Needs the other two. */
void dl_proposal_rounds(
	struct dl_proposal *p, const struct dl_plan_given *given);

/* Best first: most useful and then best attended, both to a percent, since that
 * is as exact as it is; then smallest H, tau and M, the narrowest need and the
 * smallest quorum. */
void dl_proposals_sort(struct dl_proposal *p, size_t n);

#endif
