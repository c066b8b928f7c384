/*
 * The syncer core's state, shared by the files of this room and by no other.
 */
#ifndef DL_SYNC_CORE_H
#define DL_SYNC_CORE_H

#include "sync/sync.h"

enum { INSTANCES_KEPT = 16 }; /* a name, so that an old one that comes back
			       * is not counted twice */

/* One process that ran under a name: which of its pushes are known. */
struct instance {
	uint64_t id;
	struct last {
		uint64_t taken, merged; /* seq */
	} *last; /* P */
};

enum { MEMBER = 1, REPORTED = 2, REFUSED = 4 };

/* What a learner has to do with a fragment. */
struct share {
	uint64_t got;          /* its steps when it last received it */
	uint64_t pushed_steps; /* sum of what its pushes of it claimed */
	uint64_t pushed_tokens;
	uint32_t kept;       /* its pushes that no merge has taken yet */
	unsigned char flag;  /* of the open round: one that is MEMBER and no
			      * more is waited for; one whose push for it was
			      * REFUSED counts as no member */
};

struct learner {
	char name[DL_NAME_MAX + 1];
	size_t rank; /* among all of the run, in byte order of names */
	struct instance *instance; /* newest last */
	size_t instances;
	int connected;
	int away;            /* was known before a restart, not back since */
	int active;          /* has stepped or pushed since it joined */
	int drained;         /* has answered `end` */
	int leaving;         /* has said so: what it pushes is its last */
	uint32_t finals;     /* final versions applied */
	uint64_t clock, steps, tokens;
	uint64_t ceiling;    /* what clock can be at most */
	uint64_t brought;    /* the clock that it came back with, or 0 */
	double credit;       /* steps it might report at credit_at */
	int64_t credit_at;
	int64_t joined_at, step_at;
	double step_ns;      /* smoothed; 0 unknown */
	double step_tokens;  /* smoothed tokens a step */
	double loss;
	struct share *of;    /* P */
	struct dl_sync_learner_info count; /* only the counters are used */
};

struct push {
	struct learner *from;
	uint64_t instance, id, seq, step, steps, tokens;
	double scale;
	int late; /* weighs, but does not count towards the quorum */
};

struct pushes {
	struct push *item;
	size_t n, cap;
};

struct tally {
	uint32_t live, reported; /* live members, and those who reported */
};

struct fragment {
	struct dl_version version, origin;
	uint64_t step;       /* of the last round that closed */
	uint64_t settled;    /* of the last one whose merge is committed: the
			      * version's */
	uint64_t considered; /* the last due step a round was thought of */
	/* the open round */
	int open;
	uint64_t round_step;
	int64_t opened_at, quorum_at, close_at; /* INT64_MAX: not yet */
	struct tally tally;  /* of its members ... */
	uint64_t tallied;    /* ... when s->lives was that; 0: not yet */
	struct pushes round;
	struct pushes waiting; /* for the next round */
	struct pushes alone;   /* late ones, each to be merged by itself */
	/* the merge in hand */
	int merging;
	int64_t merging_at;
	struct pushes merge;
	struct dl_sync_part *part;
	double norm[DL_NORMS_KEPT];
	uint32_t norms; /* ever accepted */
	double sorted[DL_NORMS_KEPT]; /* the same norms */
};

/* The end collects last pushes, merges them, sends the final values. */
enum phase { RUNNING, COLLECTING, MERGING, SENDING, DONE };

struct dl_sync {
	struct dl_sync_config config;
	uint32_t fragments;
	uint32_t served; /* of them */
	uint64_t epoch, clock, tokens;
	int risen; /* of passes: the clock, and no round was opened since */
	int64_t now;
	struct learner **learner; /* in byte order of names */
	size_t learners, learner_cap;
	struct learner **slot; /* the same by the hash of their names ... */
	size_t slots;          /* ... a power of two, at least twice as many;
				* or 0 */
	struct learner **here; /* those connected, in the same order */
	size_t heres;
	/* What follows from who is live is kept until that changes. */
	uint64_t lives;     /* rises whenever it does */
	int64_t live_until; /* nobody stalls before, no round is overdue */
	double usual_ns;    /* a step of the median live learner ... */
	size_t usual_for;   /* ... for so many reports more */
	size_t aways; /* learners that are away ... */
	int64_t back_by; /* ... and when an end waits for them no more; 0: not
			  * before the first event */
	struct fragment *fragment;
	uint32_t *open; /* fragments with an open round, in order */
	size_t opens;
	struct dl_sync_action *action; /* queue: [taken, n) */
	size_t action_at, actions, action_cap;
	enum phase phase;
	int64_t end_at; /* deadline of the phase */
	uint64_t rounds, merges, members, reported;
	uint64_t contributions, contributed_steps;
	double quorum_ns, sync_ns;
	int64_t grace_ns;
};

static inline int serves(const struct dl_sync *s, uint32_t p)
{
	return p < s->fragments
		&& (!s->config.shards
			|| p % s->config.shards == s->config.shard);
}

/* An exponential moving average; the first sample counts as it is. */
static inline double smooth(double old, double sample)
{
	return old > 0 ? old + 0.2 * (sample - old) : sample;
}

/* sync.c */
struct dl_sync_action *act(struct dl_sync *s, enum dl_sync_action_kind kind);
struct dl_sync_action *act_to(struct dl_sync *s, enum dl_sync_action_kind kind,
	const struct learner *l);
void pushes_add(struct pushes *list, const struct push *p);
/* The pace of the run: the fastest live learner's time a step; 0 unknown. */
double pace(const struct dl_sync *s);
void pushes_move(struct pushes *to, struct pushes *from);

/* index.c */
struct learner *find_learner(const struct dl_sync *s, const char *name);
void index_learner(struct dl_sync *s, struct learner *l);

/* member.c */
struct learner *make_learner(struct dl_sync *s, const char *name);
void free_learner(struct learner *l);
struct instance *find_instance(const struct learner *l, uint64_t id);
struct instance *make_instance(struct dl_sync *s, struct learner *l,
	uint64_t id);
int is_stalled(const struct dl_sync *s, const struct learner *l);
int is_live(const struct dl_sync *s, const struct learner *l);
void lives_change(struct dl_sync *s, const struct learner *l);
void notice_stalls(struct dl_sync *s);
void on_join(struct dl_sync *s, const struct dl_sync_event *ev);
void on_leave(struct dl_sync *s, const struct dl_sync_event *ev);
void on_step(struct dl_sync *s, const struct dl_sync_event *ev);
void send_global(struct dl_sync *s, const struct learner *l, uint32_t p);
int is_current(const struct learner *l, uint64_t instance);

/* judge.c */
uint64_t judge_return(const struct dl_sync *s, const struct learner *l);
uint64_t burst(const struct dl_sync *s); /* steps that may come at once */
enum dl_refusal judge_step(struct dl_sync *s, const struct learner *l,
	const struct dl_sync_event *ev, double *credit);
enum dl_refusal judge_push(const struct dl_sync *s, const struct learner *l,
	const struct dl_sync_event *ev, double *scale);
void remember_norm(struct fragment *f, double norm);
void sort_norms(struct fragment *f);

/* round.c */
void consider_rounds(struct dl_sync *s);
void begin_round(struct dl_sync *s, uint32_t p, uint64_t step);
void end_round(struct dl_sync *s, uint32_t p);
void report(const struct dl_sync *s, uint32_t p, const struct push *push);
void check_round(struct dl_sync *s, uint32_t p);
void check_rounds(struct dl_sync *s);
void close_round(struct dl_sync *s, uint32_t p);
int64_t round_wake(const struct dl_sync *s, uint32_t p);
int64_t overdue_at(const struct dl_sync *s, uint32_t p);

/* push.c */
void on_push(struct dl_sync *s, const struct dl_sync_event *ev);
void on_barred(struct dl_sync *s, const struct dl_sync_event *ev);

/* merging.c */
void begin_merge(struct dl_sync *s, uint32_t p);
void merge_alone(struct dl_sync *s, uint32_t p);
void on_merged(struct dl_sync *s, const struct dl_sync_event *ev);

/* settle.c */
const struct push *find_pending(const struct fragment *f,
	const struct learner *l, uint64_t instance, uint64_t seq,
	enum dl_taken *taken);
uint64_t settled(const struct dl_sync *s, const struct learner *l, uint32_t p);
void tell_settled(struct dl_sync *s, const struct learner *l, uint32_t p);

/* end.c */
void begin_end(struct dl_sync *s);
void check_end(struct dl_sync *s);
int64_t end_wake(const struct dl_sync *s);
void on_drained(struct dl_sync *s, const struct dl_sync_event *ev);
void on_applied(struct dl_sync *s, const struct dl_sync_event *ev);

#endif
