/*
 * What a tape tells of a run: its events are given to the cores they came
 * from, and what those counted is summed over the starts of the syncer.
 */
#ifndef DL_STATE_STAT_H
#define DL_STATE_STAT_H

#include "state/tape.h"

struct dl_stat_member {
	char name[DL_NAME_MAX + 1];
	uint64_t steps, tokens; /* its own, of all its instances */
	int64_t here_ns;	/* how long it was connected */
	int64_t seen;		/* wall time of its last event */
	/* Counters are of all starts, the rest is of the last one. */
	struct dl_sync_learner_info info;
	/* private */
	int counting; /* from the values below, in this start */
	uint64_t instance, steps_then, tokens_then;
	int64_t now_then;
	int here_then;
};

struct dl_stat {
	char run[DL_NAME_MAX + 1]; /* "" when there is no start */
	uint64_t starts;
	int64_t first, last;	       /* wall time of lines */
	struct dl_stat_member *member; /* in byte order of names */
	size_t members;
	uint64_t contributions;	  /* merged; the pushes of a learner are one */
	struct dl_sync_info info; /* rounds and merges of all starts */
	/* private */
	struct dl_sync *core;
	size_t room;
};

void dl_stat_init(struct dl_stat *s);
void dl_stat_release(struct dl_stat *s);

/* Takes the lines of a tape in order, as dl_tape_next gives them. */
void dl_stat_line(struct dl_stat *s, const struct dl_tape_line *l);
/* After the last line: completes the figures above. */
void dl_stat_end(struct dl_stat *s);

/* All members as one, named "*". */
void dl_stat_total(const struct dl_stat *s, struct dl_stat_member *sum);
/* Mean steps of a merged contribution; 0 when there is none. */
double dl_stat_effective_h(const struct dl_stat *s);
/* Members and reports of closed rounds, a round; 0 when there is none. */
void dl_stat_turnout(const struct dl_stat *s, double *members, double *reports);

#endif
