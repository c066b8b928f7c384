/*
 * The table of dl-sim fleet: a line a learner and one for all, means of what
 * several runs gave.
 */
#ifndef CMD_SIM_FLEET_TABLE_H
#define CMD_SIM_FLEET_TABLE_H

#include "cmd/table.h"
#include "sim/fleet.h"

struct fleet_line;

struct fleet_table {
	struct cmd_table table; /* its format is the caller's */
	/* private */
	uint32_t learners, runs;
	struct fleet_line *line; /* learners, then their total */
};

/* One run more, of always as many learners. */
void fleet_table_add(struct fleet_table *t, const struct dl_fleet_config *c,
	const struct dl_fleet_result *r);
/* Prints the table, which is released. */
void fleet_table_print(struct fleet_table *t);

#endif
