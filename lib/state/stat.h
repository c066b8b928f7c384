/*
 * What a run has done, in figures: of its members, its fragments and itself,
 * now and over time.
 *
 * They come from the events of the syncer's core and from what it decided: of
 * a tape, whose cores are made again here and summed over the starts of the
 * syncer, or of a syncer's own core as it goes. Memory is bounded by names and
 * fragments, however long the run is.
 */
#ifndef DL_STATE_STAT_H
#define DL_STATE_STAT_H

#include "state/history.h"
#include "state/tape.h"

struct dl_stat_member {
	char name[DL_NAME_MAX + 1];
	enum dl_stat_state state;
	uint64_t clock, lag;	/* and how far behind the run's */
	uint64_t steps, tokens; /* its own, of all its instances */
	double rate;		/* steps a second of the time it was here */
	double share;		/* of all weight that was merged */
	int64_t first, seen;	/* wall time of its first and last event; 0:
				 * never heard of on this tape */
	uint64_t joins;		/* processes that came by that name */
	double loss;		/* of its last step */
	int64_t ns[DL_STAT_STATES];
	uint64_t wasted; /* tokens of pushes that came too late and were
			  * dropped, as the part of the model they were of */
	struct dl_sync_learner_info info; /* its counters are of all starts */
	char *timeline; /* a letter a bucket of the history; NULL in a sum */
	/* private */
	struct dl_sync_learner_info past; /* counters of starts before */
	struct dl_sync_learner_info then; /* the core's at its last event */
	int counting;			  /* then is of this start */
	int drained;			  /* and so it leaves because it will */
	double weight;			  /* shares of merges, summed */
	int64_t since;			  /* accounted till then */
	int64_t lively;			  /* its last step */
	float *held;			  /* nanoseconds a bucket and state */
};

struct dl_stat_fragment {
	struct dl_version version;
	int64_t committed; /* wall time; 0: not on this tape */
	uint64_t rounds, closed, merges;
	uint64_t members, reports; /* of its closed rounds, summed */
	int64_t open_ns;	   /* how long those were open, summed */
	double norm;		   /* of a push a step, smoothed; NaN: none */
	struct dl_alike alike;	   /* the pushes of a merge, smoothed; NaN:
				    * none, or not known */
	/* private */
	uint64_t step; /* of the last round opened */
	int64_t opened;
};

/* Of the run; but for clock and tokens, of what is on this tape. */
struct dl_stat_totals {
	uint64_t fragments, epoch, starts;
	uint64_t clock, tokens; /* since the run began */
	int64_t first, last;	/* wall time of the first and last line */
	uint64_t live;		/* members that train */
	uint64_t rounds, closed, merges;
	uint64_t members, reports; /* of closed rounds, summed */
	uint64_t contributions;	   /* merged; pushes of one learner are one */
	uint64_t ending, done;
	double participation; /* reports / members; NaN: no round closed */
	double h;	      /* mean steps of a contribution; NaN: none */
	double goodput; /* useful time / time of members that were to train */
	double uptime;	/* share of the time in which some member trained */
	double up_bits, down_bits;	     /* a value; NaN: nothing went */
	double quorum_ns, grace_ns, sync_ns; /* of a round, smoothed */
	double step_ns;			     /* of the fastest member */
};

struct dl_stat {
	char run[DL_NAME_MAX + 1]; /* "" when there is no start */
	struct dl_stat_totals totals;
	struct dl_stat_member all;     /* the sum of all, named "*" */
	struct dl_stat_member *member; /* in byte order of names */
	size_t members;
	struct dl_stat_fragment *fragment; /* totals.fragments */
	struct dl_history history;
	/* private */
	size_t room; /* for members */
	struct dl_sync *core;
	int owned;	/* the core is of a tape, and ours */
	int64_t stall;	/* nanoseconds without a step */
	int64_t t;	/* of the last event, from the first line on */
	int64_t now;	/* of the last event, by the syncer */
	int64_t lively; /* the last step of anybody */
	int64_t begun;	/* the first step of anybody; -1: none yet */
	int64_t known_ns, up_ns;
	size_t training;	  /* members in that state */
	uint64_t shared;	  /* merges decided */
	struct dl_sync_info past; /* of starts before */
	uint64_t past_contributions;
};

void dl_stat_init(struct dl_stat *s);
void dl_stat_release(struct dl_stat *s);

/* Takes the lines of a tape in order, as dl_tape_next gives them. */
void dl_stat_line(struct dl_stat *s, const struct dl_tape_line *l);

/*
 * The same of a core that somebody else drives and that outlives s: once it is
 * made, and then with each event
 *	dl_stat_at(s, ev->now, wall);
 *	dl_sync_event(core, ev);
 *	while (dl_sync_next(core, &a))
 *		dl_stat_act(s, ev, &a);
 *	dl_stat_follow(s, ev);
 * and after DL_EV_MERGED dl_stat_alike.
 */
void dl_stat_begin(struct dl_stat *s, const char *run,
	const struct dl_sync_config *c, struct dl_sync *core, int64_t now,
	int64_t wall);
void dl_stat_at(struct dl_stat *s, int64_t now, int64_t wall);
void dl_stat_act(struct dl_stat *s, const struct dl_sync_event *ev,
	const struct dl_sync_action *a);
void dl_stat_follow(struct dl_stat *s, const struct dl_sync_event *ev);
/* How alike the pushes of that fragment's merge were, if that is known. */
void dl_stat_alike(
	struct dl_stat *s, uint32_t fragment, const struct dl_alike *alike);

/* Brings all figures to the time of the last event, or of dl_stat_at; more may
 * come after that. */
void dl_stat_settle(struct dl_stat *s);

/* Do nearly all rounds have one report of several members, so that each merges
 * alone and no more is learned from several than from one? */
int dl_stat_takes_turns(const struct dl_stat *s);

#endif
