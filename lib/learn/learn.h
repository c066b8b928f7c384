/*
 * The learner's core: every decision of a learner as a pure state machine.
 *
 * It does no I/O, reads no clock and holds no tensor: the driver (dl-learn, or
 * dl-sim fleet in virtual time) owns the trainer, the anchors and the links.
 * Several syncers may each serve some of the fragments.
 *
 * At a step boundary the actions come in DESIGN's order: copy what is due, was
 * opened, or is about to be overwritten; apply what came; export the state, if
 * somebody waits for it; go on. A learner never waits, except with --wait and
 * at the end of a run. What concerns the trainer (LOAD, IMPORT, CLOCK, COPY,
 * APPLY, EXPORT, GO) comes only while it stands there.
 *
 * Each syncer knows only its own opens, so it is told a clock that only they
 * move; the trainer's clock is the highest of these.
 */
#ifndef DL_LEARN_LEARN_H
#define DL_LEARN_LEARN_H

#include <stddef.h>
#include <stdint.h>

#include "sync/clock.h"
#include "sync/sync.h"

enum dl_apply { DL_APPLY_OVERWRITE, DL_APPLY_CARRY, DL_APPLY_BLEND };

struct dl_learn_config {
	struct dl_schedule schedule; /* P and H */
	uint64_t tau;		     /* of wait */
	int wait;		     /* lock-step: the baseline */
	enum dl_apply apply;
	double alpha; /* of DL_APPLY_BLEND: share kept */
	uint32_t syncers;
	const uint32_t *syncer; /* P: which syncer serves p; NULL: 0 */
	int64_t step_every;	/* ns between `step`s that nothing needs */
};

enum dl_learn_event_kind {
	DL_LE_STATE,   /* clock, versions: a peer's state is here, before any
			* welcome: IMPORT follows. No version is 0.0 */
	DL_LE_WELCOME, /* syncer, clock, versions, origins, seqs (P each) */
	DL_LE_LOST,    /* syncer: its connection is gone */
	DL_LE_OPEN,    /* fragment, step */
	DL_LE_GLOBAL,  /* fragment, version, step, final: arrived whole; the
			* driver keeps the newest until DL_LA_APPLY */
	DL_LE_TAKEN,   /* fragment, seq, taken */
	DL_LE_END,     /* syncer, step: the run ends */
	DL_LE_BYE,     /* syncer: its part of the run is over, come what may;
			* not for `bye restarting`, which is LOST */
	DL_LE_STEP,    /* tokens, loss: the trainer is at a step boundary */
	DL_LE_FAILED,  /* fragment, seq: that copy could not be made (before
			* RESET), or was never sent: its steps are lost */
	DL_LE_RESET,   /* the trainer died, or cannot IMPORT: unsent steps are
			* lost, LOAD follows with the anchors; of one that made
			* no step from a peer's state, when the syncer has sent
			* its values */
	DL_LE_DRAIN,   /* deliver everything, then finish; nothing is loaded
			* any more */
	DL_LE_EXPORT,  /* clock: somebody wants the trainer's state, of no
			* earlier clock */
};

struct dl_learn_event {
	enum dl_learn_event_kind kind;
	int64_t now;
	uint32_t syncer, fragment;
	uint64_t clock, step, seq, tokens;
	struct dl_version version;
	const struct dl_version *versions, *origins; /* WELCOME; entries of
						      * other syncers unused;
						      * STATE: versions */
	const uint64_t *seqs; /* WELCOME: last push taken, a fragment */
	enum dl_taken taken;
	int final;
	double loss;
};

enum dl_learn_action_kind {
	DL_LA_LOAD,    /* clock: all fragments have come: give the trainer the
			* model and `clock` clock fresh; GO follows */
	DL_LA_IMPORT,  /* in place of LOAD: give the trainer the state of a
			* peer; CLOCK follows, and GO when a welcome has come
			* and no fragment is more than one version behind */
	DL_LA_COPY,    /* fragment, seq, step, base, steps, tokens: take the
			* trainer's values now; send the push when it goes on;
			* keep it until DL_LA_RELEASE (or DL_LE_FAILED) */
	DL_LA_APPLY,   /* fragment, version, apply, alpha, final */
	DL_LA_CLOCK,   /* clock: the trainer's clock jumps */
	DL_LA_EXPORT,  /* clock: the trainer's state is of now, with the
			* fragments at dl_learn_version */
	DL_LA_GO,      /* the trainer goes on */
	DL_LA_WANT,    /* syncer, fragment: ask it for the values */
	DL_LA_STEP,    /* syncer, clock, steps, tokens, loss: tell it */
	DL_LA_APPLIED, /* fragment, version: tell its syncer */
	DL_LA_RESEND,  /* syncer, fragment, seq, step, version: send that push
			* again, with this step and dl_version_base: clock and
			* store may have been set back */
	DL_LA_RELEASE, /* fragment, seq: that push is settled */
	DL_LA_DRAINED, /* syncer: answer its `end` */
	DL_LA_FINISH,  /* stop the trainer, say bye, exit 0 */
};

struct dl_learn_action {
	enum dl_learn_action_kind kind;
	uint32_t syncer, fragment;
	uint64_t clock, seq, step, steps, tokens;
	struct dl_version base, version;
	enum dl_apply apply;
	double alpha, loss;
	int final;
};

struct dl_learn;

struct dl_learn *dl_learn_new(const struct dl_learn_config *c);
void dl_learn_free(struct dl_learn *l);
void dl_learn_event(struct dl_learn *l, const struct dl_learn_event *ev);
int dl_learn_next(struct dl_learn *l, struct dl_learn_action *a);

/* The trainer's clock, and for hello what it has. */
uint64_t dl_learn_clock(const struct dl_learn *l);
uint64_t dl_learn_clock_at(const struct dl_learn *l, uint32_t syncer);
struct dl_version dl_learn_version(const struct dl_learn *l, uint32_t p);

/* Own steps of p that its syncer has not got. */
uint64_t dl_learn_undelivered(const struct dl_learn *l, uint32_t p);

struct dl_learn_info {
	uint64_t clock, steps, tokens; /* own, since this instance began */
	/* Own steps, summed over fragments: steps * P is the sum of these. */
	uint64_t pushed;      /* handed on in a push */
	uint64_t overwritten; /* lost to an apply */
	uint64_t lost;	      /* lost with a trainer */
	uint64_t unsent;      /* still in the counters */
	uint64_t outstanding; /* pushes not settled yet */
	int holding;	      /* the trainer waits */
	int finished;
};
void dl_learn_info(const struct dl_learn *l, struct dl_learn_info *out);

#endif
