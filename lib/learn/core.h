/*
 * The learner core's state, shared by the files of this room and by no other.
 */
#ifndef DL_LEARN_CORE_H
#define DL_LEARN_CORE_H

#include "learn/learn.h"

/* A push that is not settled. */
struct sent {
	uint64_t seq, step, steps;
	uint64_t own; /* steps of this learner when it was made */
	int taken;    /* the syncer has it */
	int waiting;  /* ... and has no round for it yet */
};

struct fragment {
	struct dl_version version; /* its anchor's */
	struct dl_version newest;  /* its syncer's, as far as is known */
	uint64_t seq;		   /* of its last push */
	uint64_t spent_steps, spent_tokens; /* of the learner's own, those that
					     * no push of it is to have */
	uint64_t pushed_step;	   /* the clock of its last push */
	uint64_t opened;	   /* the highest `open` */
	/* a global that has come and is not applied */
	int waiting, final;
	struct dl_version waiting_version;
	uint64_t waiting_step;
	int done;	   /* holds the final values, or none will come */
	struct sent *sent; /* oldest first */
	size_t sents, sent_cap;
};

struct syncer {
	int connected;
	int ending;   /* said `end` */
	int answered; /* has our answer to it */
	uint64_t clock;
	uint64_t opened; /* the highest `open` */
	uint64_t told_clock, told_steps; /* in the last `step` */
};

struct dl_learn {
	struct dl_learn_config config;
	uint32_t fragments;
	uint64_t trainer_clock, steps, tokens;
	struct fragment *fragment;
	uint32_t dones;	       /* fragments that are done */
	unsigned char *called; /* P: 1 when a boundary has to look at it */
	struct syncer *syncer;
	int loaded;	 /* the trainer has the model */
	int newcomer;	 /* has a peer's state, and made no step from it */
	int at_boundary; /* the trainer waits for `go` */
	int draining;
	int exporting;	    /* the state is wanted ... */
	uint64_t export_at; /* ... of that clock, or later */
	int finished;
	int64_t step_told_at;
	double loss;
	uint64_t pushed, overwritten, lost;
	struct dl_learn_action *action; /* queue: [taken, n) */
	size_t action_at, actions, action_cap;
};

static inline uint32_t syncer_of(const struct dl_learn *l, uint32_t p)
{
	return l->config.syncer ? l->config.syncer[p] : 0;
}

static inline uint64_t clock_of(const struct dl_learn *l, uint32_t p)
{
	return l->syncer[syncer_of(l, p)].clock;
}

/* Its steps and tokens since the last push or apply. */
static inline uint64_t steps_of(const struct dl_learn *l, uint32_t p)
{
	return l->steps - l->fragment[p].spent_steps;
}

static inline uint64_t tokens_of(const struct dl_learn *l, uint32_t p)
{
	return l->tokens - l->fragment[p].spent_tokens;
}

/* Only so many of them are left. */
static inline void keep_of(
	struct dl_learn *l, uint32_t p, uint64_t steps, uint64_t tokens)
{
	l->fragment[p].spent_steps = l->steps - steps;
	l->fragment[p].spent_tokens = l->tokens - tokens;
}

static inline void make_done(struct dl_learn *l, uint32_t p)
{
	l->dones += !l->fragment[p].done;
	l->fragment[p].done = 1;
}

/* learn.c */
struct dl_learn_action *learn_act(
	struct dl_learn *l, enum dl_learn_action_kind kind);

/* boundary.c: where the trainer is, an event may let it go on. */
void learn_proceed(struct dl_learn *l, int64_t now);

/* hear.c: what a syncer says. */
void learn_on_welcome(struct dl_learn *l, const struct dl_learn_event *ev);
void learn_on_global(struct dl_learn *l, const struct dl_learn_event *ev);
void learn_on_taken(struct dl_learn *l, const struct dl_learn_event *ev);
void learn_on_bye(struct dl_learn *l, const struct dl_learn_event *ev);

/* state.c: what a peer's state means. */
void learn_on_state(struct dl_learn *l, const struct dl_learn_event *ev);
void learn_forget_state(struct dl_learn *l);
int learn_is_behind(const struct fragment *f);

/* sent.c: pushes that are not settled. */
void learn_settle(struct dl_learn *l, uint32_t p, size_t i);
void learn_settle_all(struct dl_learn *l, uint32_t p);
void learn_on_failed(struct dl_learn *l, const struct dl_learn_event *ev);

#endif
