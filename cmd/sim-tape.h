/*
 * dl-sim fleet --tape: what its syncer was told, as a tape that dl-stat reads.
 */
#ifndef CMD_SIM_TAPE_H
#define CMD_SIM_TAPE_H

#include "base/mem.h"
#include "sim/fleet.h"

struct sim_tape { /* private */
	struct dl_buf text;
	uint32_t fragments;
};

/* From now on the run is noted, in memory. */
void sim_tape_begin(struct sim_tape *t, struct dl_fleet_config *c);
/* Writes it, whole or not at all; 73 or 74. */
int sim_tape_end(struct sim_tape *t, const char *path, struct dl_err *e);

#endif
