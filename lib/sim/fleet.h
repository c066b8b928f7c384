/*
 * A fleet in virtual time: learner cores drive a syncer's core (or several
 * that share the fragments) over links with delays, while processes die,
 * links break, trainers crash, syncers restart and somebody lies. There are no
 * tensors; the ledger follows every own step instead, and the run stops at the
 * first rule of DESIGN's "Rounds" that it sees broken.
 */
#ifndef DL_SIM_FLEET_H
#define DL_SIM_FLEET_H

#include <stdint.h>

#include "learn/learn.h"
#include "sim/ledger.h"
#include "sync/sync.h"

struct dl_fleet_learner {
	int64_t step_ns;	    /* mean time of an inner step */
	double jitter;		    /* its deviation, relative */
	uint64_t tokens;	    /* a step */
	uint32_t site;		    /* those of one site share its link */
	int64_t delay_ns;	    /* of a message, each way */
	int64_t push_ns, global_ns; /* of a fragment on the link, up and down;
				     * one at a time */
	int64_t start_ns;	    /* when it first comes */
	int64_t here_ns, away_ns;   /* mean times until it leaves, and is back;
				     * here 0: it stays */
	int liar;
};

/* A learner's process that dies at a moment told before, and its successor. */
struct dl_fleet_kill {
	uint32_t learner;
	int64_t at_ns, down_ns;
};

struct dl_fleet_config {
	struct dl_sync_config sync;
	enum dl_apply apply;
	double alpha;
	int wait;
	uint32_t learners;
	const struct dl_fleet_learner *learner;
	double spread;	 /* deviation of learners' mean steps, relative */
	int64_t join_ns; /* from a process's start to its first step, besides
			  * what crosses the link */
	/* Whenever a learner comes or goes, all stand still for so long, as
	 * elastic data-parallel training does; what changes until gather_ns
	 * later, or while they stand, is one such change. 0: nobody does. */
	int64_t regroup_ns, gather_ns;
	uint32_t syncers; /* fragment p is served by p mod syncers */
	/* What the syncer hears of a fragment's size: values, bytes of a push
	 * and of a global. */
	uint64_t elements, push_bytes, global_bytes;
	int64_t merge_ns;
	/* Mean times between (0: never) and how long each lasts. */
	int64_t death_ns, down_ns; /* a learner's process */
	const struct dl_fleet_kill *kill;
	size_t kills;
	int64_t drain_ns;	      /* ... that ends on SIGTERM */
	int64_t cut_ns, cut_for_ns;   /* a link */
	int64_t trainer_ns, load_ns;  /* a trainer */
	int64_t crash_ns, restart_ns; /* a syncer; half are SIGTERM */
	double copy_fails;	      /* share of copies with a dying trainer */
	int64_t detect_ns;	      /* until a broken link is noticed */
	/* The end is asked for at the first of these that is not 0. */
	uint64_t rounds, steps, tokens;
	int64_t time_ns;
	int calm_end; /* nothing more breaks once it was asked for */
	uint64_t seed;
	/* Told, unless NULL, of each start of the first syncer, with what it
	 * was restored from, or NULL for a new run; and of all that it hears.
	 */
	void (*started)(void *ctx, const struct dl_sync_config *c,
		const struct dl_sync_saved *saved, int64_t now);
	void (*heard)(void *ctx, const struct dl_sync_event *ev);
	void *ctx;
};

/* Defaults for that many fragments; learners are the caller's. */
void dl_fleet_config_default(struct dl_fleet_config *c, uint32_t fragments);

struct dl_fleet_line {
	struct dl_account account;
	uint64_t steps, clock;
	uint64_t rounds, reported; /* member of; pushed in time */
	int64_t busy_ns, up_ns;	   /* training; alive */
	int64_t allocated_ns;	   /* since it first came */
};

struct dl_fleet_result {
	struct dl_fleet_line *learner; /* one each */
	struct dl_fleet_line total;    /* the sum; the highest clock */
	uint64_t rounds, merges;       /* opened; committed */
	int64_t ended_ns;	       /* when all was over */
	char fault[200];	       /* the first broken rule, or "" */
};

void dl_fleet_run(const struct dl_fleet_config *c, struct dl_fleet_result *out);
void dl_fleet_result_release(struct dl_fleet_result *r);

#endif
