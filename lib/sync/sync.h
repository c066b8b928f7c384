/*
 * The syncer's core: every decision of the syncer as a pure state machine.
 *
 * Events go in (a push came, time is now T, a learner left), actions come out
 * (open this, merge these, send that). It does no I/O, reads no clock and
 * holds no lock: dl-sync serve, run and replay and dl-sim fleet all drive it.
 * The events are the tape. It implements DESIGN's "Rounds"; the paper's
 * quorum and adaptive grace window are in round.c, its token weights in
 * merging.c.
 *
 *	dl_sync_event(core, &event);
 *	while (dl_sync_next(core, &action))
 *		carry out the action;
 *
 * Events are taken one by one, unless config says that they come in passes:
 * then rounds open once all that learners tell of their steps is known, and
 * none is closed by a push before the others of the same pass have come.
 *
 * After that the driver sleeps until dl_sync_wake(core) or the next event.
 */
#ifndef DL_SYNC_SYNC_H
#define DL_SYNC_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/num.h"
#include "sync/clock.h"

enum {
	DL_NAME_MAX = 63,    /* bytes of a learner's name */
	DL_NORMS_KEPT = 32,  /* accepted norms a fragment, for --max-norm */
	DL_NORMS_NEEDED = 8, /* of those, before norms are judged */
};

/* How long after a restart an end waits for learners that were known before: a
 * learner tries again after 15 s at most. */
#define DL_RETURN_NS (20 * DL_SECOND)

/* 1 when s is a good name: 1 to 63 of A-Z a-z 0-9 . _ -, no dot in front. */
int dl_name_ok(const char *s, size_t n);

enum dl_late { DL_LATE_DROP, DL_LATE_NEXT, DL_LATE_NOW };
enum dl_below { DL_BELOW_WAIT, DL_BELOW_MERGE };
enum dl_grace { DL_GRACE_NONE, DL_GRACE_ADAPTIVE, DL_GRACE_FIXED };

struct dl_sync_config {
	struct dl_schedule schedule; /* P and H */
	uint32_t shard, shards;      /* serves p when p mod shards is shard;
				      * shards 0: serves all */
	uint32_t quorum;             /* K >= 1 */
	uint64_t tau;                /* overlap, steps */
	uint64_t min_h;              /* steps since p was received */
	enum dl_grace grace;
	double gamma;                /* share of the slack, below 1 */
	int64_t grace_ns;            /* of DL_GRACE_FIXED */
	enum dl_late late;
	enum dl_below below;
	int64_t below_ns;            /* of DL_BELOW_MERGE */
	int64_t stall_ns;            /* no step for so long: not waited for */
	int64_t end_ns;              /* deadline of each phase of the end */
	double max_rate;             /* times the median learner's step rate */
	double max_norm;             /* times the median norm a step: scaled */
	double refuse_norm;          /* times the same: refused */
	uint64_t budget_tokens;      /* 0: none */
	uint64_t budget_steps;       /* 0: none */
	int passes;                  /* events up to a TIME are of one moment */
};

/* The defaults for P fragments (dl-sync(1) lists them). */
void dl_sync_config_default(struct dl_sync_config *c, uint32_t fragments);

enum dl_sync_event_kind {
	DL_EV_JOIN,    /* learner, instance, clock, steps, tokens, versions:
			* said hello, with what it has done and holds */
	DL_EV_LEAVE,   /* learner, instance: its connection is gone */
	DL_EV_STEP,    /* learner, clock, steps, tokens, loss */
	DL_EV_PUSH,    /* learner, fragment, seq, step, base, steps, tokens,
			* norm, push, elements, bytes: a push has arrived
			* whole */
	DL_EV_BARRED,  /* learner, fragment, seq, steps, bytes: a push came that
			* the learner has no right to, and was not read */
	DL_EV_APPLIED, /* learner, fragment, version, elements, bytes */
	DL_EV_WANT,    /* learner, fragment: asks for the current values */
	DL_EV_DRAINED, /* learner: answered `end`, all its pushes are in; while
			* the run goes on: it is about to leave */
	DL_EV_MERGED,  /* fragment, version: that merge is committed */
	DL_EV_TIME,    /* nothing but time */
	DL_EV_END,     /* somebody asks for the end of the run */
	DL_EV_KINDS
};

struct dl_sync_event {
	enum dl_sync_event_kind kind;
	int64_t now;             /* monotonic nanoseconds, never falling */
	const char *learner;     /* a good name */
	uint64_t instance;       /* random, one a learner process */
	uint64_t clock;          /* the learner's logical clock s_m */
	uint64_t steps, tokens;  /* JOIN, STEP: own, since this instance began;
				  * PUSH: since its previous push or apply */
	uint32_t fragment;
	uint64_t seq;            /* rises with each push of that fragment */
	uint64_t step;           /* PUSH: the clock it was made at */
	struct dl_version base;  /* PUSH: version its anchor came from */
	struct dl_version version;
	const struct dl_version *versions; /* JOIN: P of them, what it has */
	double norm;             /* PUSH: |delta|, not finite if any value is */
	double loss;             /* STEP: NaN when unknown */
	uint64_t push;           /* PUSH: the driver's handle of the bytes */
	uint64_t elements;       /* PUSH: of the delta; APPLIED: of all globals
				  * of that fragment that were sent to the
				  * learner since the last APPLIED */
	uint64_t bytes;          /* of the records that held these */
};

/* What `taken` says of a push. A learner keeps one that is in a round, waiting
 * or now, in case the syncer dies, until it is settled. */
enum dl_taken {
	DL_TAKEN_ROUND,   /* in the open round */
	DL_TAKEN_WAITING, /* for the fragment's next round */
	DL_TAKEN_NOW,     /* late, merged by itself */
	DL_TAKEN_LATE,    /* dropped: its round was merged before */
	DL_TAKEN_AGAIN,   /* settled before, not counted twice */
	DL_TAKEN_REFUSED, /* see enum dl_refusal */
	DL_TAKEN_SETTLED, /* it and all before it: nothing is kept for later */
	DL_TAKENS
};

enum dl_refusal {
	DL_REFUSED_NOT,
	DL_REFUSED_FINITE, /* NaN or infinity */
	DL_REFUSED_EMPTY,  /* zero steps or tokens */
	DL_REFUSED_BASE,   /* a base that was never issued */
	DL_REFUSED_COUNT,  /* more steps or tokens than it reported */
	DL_REFUSED_CLOCK,  /* a clock above what its steps and opens allow */
	DL_REFUSED_RATE,   /* steps, or pushes, that come too fast */
	DL_REFUSED_NORM,   /* far above the usual norm */
	DL_REFUSED_END,    /* the run is over */
	DL_REFUSED_BARRED, /* of a fragment that the learner may not push */
	DL_REFUSALS
};
const char *dl_taken_name(enum dl_taken t);     /* "round", "waiting", ... */
const char *dl_refusal_name(enum dl_refusal r); /* "finite", "empty", ... */

enum dl_sync_action_kind {
	DL_ACT_WELCOME, /* learner, step: its clock from now on; the rest of
			 * `welcome` is dl_sync_version, _origin, _taken */
	DL_ACT_OPEN,    /* learner, fragment, step */
	DL_ACT_TAKEN,   /* learner, fragment, seq, taken, refusal, scale; SETTLED
			 * follows once a merge is committed, and at a JOIN */
	DL_ACT_RELEASE, /* push: its bytes are not needed any more */
	DL_ACT_MERGE,   /* fragment, step, version, part: merge, commit, then
			 * DL_EV_MERGED; RELEASE follows for its pushes */
	DL_ACT_GLOBAL,  /* learner, fragment, version, step, final: send the
			 * current values, made in the round of that step */
	DL_ACT_END,     /* learner, step: push everything, then wait */
	DL_ACT_BYE,     /* learner: the run is over */
	DL_ACT_DONE,    /* the run is over: write the model, exit */
};

/* A push in a merge. Those of one learner are neighbours, in order of seq;
 * their deltas are added and weigh as one contribution. */
struct dl_sync_part {
	const char *learner; /* parts are in byte order of names */
	uint64_t push;
	double weight;       /* of the learner's whole contribution */
	double scale;        /* 1, or less for a delta above --max-norm */
};

struct dl_sync_action {
	enum dl_sync_action_kind kind;
	const char *learner; /* valid until the next dl_sync_event */
	uint64_t instance;
	uint32_t fragment;
	uint64_t step, seq, push;
	struct dl_version version;
	enum dl_taken taken;
	enum dl_refusal refusal;
	double scale;
	int final;
	const struct dl_sync_part *part; /* valid until DL_EV_MERGED */
	size_t parts;
};

struct dl_sync;

/* A new run: epoch 1, every fragment at version 1.0, clock 0. */
struct dl_sync *dl_sync_new(const struct dl_sync_config *c);
void dl_sync_free(struct dl_sync *s);

/* Takes an event; its pointers need not outlive the call. */
void dl_sync_event(struct dl_sync *s, const struct dl_sync_event *ev);
/* What the core, as it is, would refuse that PUSH for. */
enum dl_refusal dl_sync_judge_push(
	const struct dl_sync *s, const struct dl_sync_event *ev);
/* The next action, in order; 0 when there is none. */
int dl_sync_next(struct dl_sync *s, struct dl_sync_action *a);
/* When DL_EV_TIME is due next; INT64_MAX when nothing waits for time. */
int64_t dl_sync_wake(const struct dl_sync *s);

/* What a new instance is told in `welcome`. */
uint64_t dl_sync_clock(const struct dl_sync *s); /* highest clock seen */
uint64_t dl_sync_epoch(const struct dl_sync *s);
struct dl_version dl_sync_version(const struct dl_sync *s, uint32_t p);
/* What p's version was called before this epoch began, when it still has the
 * same values: a learner that has it need not be sent anything. Otherwise the
 * version itself. */
struct dl_version dl_sync_origin(const struct dl_sync *s, uint32_t p);
/* Was a learner of that name ever here? Names are never forgotten. */
int dl_sync_knows(const struct dl_sync *s, const char *learner);
/* The last push of that instance taken for p; 0 for none. */
uint64_t dl_sync_taken(const struct dl_sync *s, const char *learner,
	uint64_t instance, uint32_t p);

/* The last push of its current instance for p that need not be kept, nor any
 * before it; 0 for none. What SETTLED says. */
uint64_t dl_sync_settled(const struct dl_sync *s, const char *learner,
	uint32_t p);

/* The step of the open round of p; 0 when none is open or the run is ending:
 * then everybody pushes everything. */
uint64_t dl_sync_round(const struct dl_sync *s, uint32_t p);
/* Is a merge of p decided, and DL_EV_MERGED not there yet? */
int dl_sync_merging(const struct dl_sync *s, uint32_t p);
/* Does that round wait for learner i of info.learners? */
int dl_sync_awaits(const struct dl_sync *s, uint32_t p, size_t i);
/* What DL_EV_PUSH would be refused for now; a driver can keep a push that has
 * come before the report that explains it. */
enum dl_refusal dl_sync_judge(const struct dl_sync *s,
	const struct dl_sync_event *push);

/* What HEAD keeps: everything that outlives the process. */
struct dl_sync_saved_fragment {
	struct dl_version version;
	uint64_t step; /* of its last round */
	double norm[DL_NORMS_KEPT];
	uint32_t norms;
};
struct dl_sync_saved_learner {
	char name[DL_NAME_MAX + 1];
	uint64_t instance;
	uint64_t *merged; /* P: last seq merged, a fragment */
};
struct dl_sync_saved {
	uint64_t epoch, clock, tokens;
	uint32_t fragments;
	struct dl_sync_saved_fragment *fragment;
	struct dl_sync_saved_learner *learner;
	size_t learners;
};
/* A copy of the state as it will be once the merge of fragment p in hand is
 * committed (p = UINT32_MAX: as it is). */
void dl_sync_save(const struct dl_sync *s, uint32_t p,
	struct dl_sync_saved *out);
void dl_sync_saved_release(struct dl_sync_saved *v);
void dl_sync_saved_copy(const struct dl_sync_saved *v,
	struct dl_sync_saved *out);
/* That process is known, and its pushes of p up to seq will not come again,
 * merged or not. */
void dl_sync_saved_settle(struct dl_sync_saved *v, const char *name,
	uint64_t instance, uint32_t p, uint64_t seq);
/* A core that goes on from saved state, in epoch v->epoch + 1. */
struct dl_sync *dl_sync_restore(const struct dl_sync_config *c,
	const struct dl_sync_saved *v);

/* Counters for status lines, dl-stat and tests. */
struct dl_sync_learner_info {
	const char *name;
	uint64_t instance;
	int connected, stalled;
	uint64_t clock, steps, tokens; /* of this instance */
	double step_ns;                /* smoothed time a step; 0 unknown */
	double loss;
	uint64_t pushes;               /* arrived; from here of all instances */
	uint64_t elements_up, bytes_up;     /* of pushes */
	uint64_t elements_down, bytes_down; /* of globals */
	uint64_t merged_pushes, merged_steps, merged_tokens;
	uint64_t rounds, reported;     /* member of; pushed in time */
	uint64_t late_pushes, late_steps, late_tokens; /* wasted */
	uint64_t refused[DL_REFUSALS]; /* pushes and clocks */
	uint64_t refused_steps;        /* of those pushes: wasted too */
	uint64_t again, scaled;
};
struct dl_sync_info {
	uint32_t fragments;            /* P */
	uint64_t clock, tokens, epoch;
	uint64_t rounds, merges;       /* opened, merged */
	double participation;          /* reported / members, closed rounds */
	double effective_h;            /* mean steps of a merged contribution */
	double quorum_ns, sync_ns, step_ns; /* smoothed */
	int64_t grace_ns;              /* the last one granted */
	size_t learners, live;
	int ending, final, done;       /* final: the versions are the last */
};
void dl_sync_info(const struct dl_sync *s, struct dl_sync_info *out);
/* The learner of that name; 0 when none was ever here. */
int dl_sync_find(const struct dl_sync *s, const char *name,
	struct dl_sync_learner_info *out);
/* Learner i of info.learners, in byte order of names; 0 past the end. */
int dl_sync_learner(const struct dl_sync *s, size_t i,
	struct dl_sync_learner_info *out);

#endif
