/*
 * The learners of dl-sim fleet: what its options say of each.
 */
#ifndef CMD_SIM_FLEET_LEARNERS_H
#define CMD_SIM_FLEET_LEARNERS_H

#include "cmd/sim-list.h"
#include "sim/fleet.h"
#include "tensor/quant.h"

struct fleet_learners {
	struct dl_fleet_learner each;	   /* what all have in common */
	uint32_t base, extra;		   /* how many stay, and come and go */
	int64_t from_ns, here_ns, away_ns; /* of those */
	uint32_t liars;
	const char *step_time;
	uint32_t sites;		       /* 0: each has its own */
	struct sim_list delays, links; /* of sites, in turn: nanoseconds, bits a
					* second */
	double values;		       /* of the model */
	enum dl_codec push, global;
};

/* base + extra of them; the caller frees. */
struct dl_fleet_learner *fleet_learners_make(
	const struct fleet_learners *l, uint32_t fragments);

#endif
