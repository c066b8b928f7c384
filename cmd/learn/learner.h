/*
 * dl-learn: a learner process. This file joins its parts: the core that
 * decides (learn/learn.h), the trainer, the tensors and the syncer's link.
 */
#ifndef CMD_LEARN_LEARNER_H
#define CMD_LEARN_LEARNER_H

#include "cmd/learn/donated.h"
#include "cmd/learn/drain.h"
#include "cmd/learn/saves.h"
#include "cmd/learn/serving.h"
#include "cmd/learn/trainer.h"
#include "cmd/learn/uplink.h"
#include "cmd/learn/weights.h"
#include "cmd/link.h"
#include "cmd/status.h"
#include "link/address.h"
#include "link/loop.h"

struct learn_options {
	struct dl_address address;
	struct dl_tcp tcp;	  /* of it */
	const char *key;	  /* likewise: a file */
	const struct dl_key *own; /* what is in it; NULL: none */
	int join; /* from a peer's state; -1: if it can be asked for one */
	struct data_options data;
	enum dl_insecure insecure;
	char *const *command;
	char name[DL_NAME_MAX + 1];
	uint64_t slot; /* DL_SLOT_NONE: the syncer's, or of the name */
	uint64_t seed;
	enum dl_codec push; /* of pushes */
	const char *apply;  /* NULL: what the syncer says */
	int wait;	    /* -1: what the syncer says */
	const char *scratch;
	const char *state;   /* where saves outlive the learner; NULL */
	uint64_t save_steps; /* between two; 0: */
	int64_t save_ns;     /* ... time; 0: none are made */
	int serves;		 /* its state is to be had at serve ... */
	struct dl_address serve; /* ... which has own */
	uint64_t serve_max;	 /* by so many at once */
	uint64_t serve_rate;	 /* bytes a second; 0: no limit */
	int64_t heartbeat_ns, poll_ns, drain_ns, stop_ns;
	int64_t give_up_ns; /* without a syncer; 0: never */
	int64_t silence_ns; /* of a trainer that owes a line */
	int check;	    /* a trainer, not to learn */
	const char *layout; /* for that; NULL: a plain one */
};

struct learner {
	const struct learn_options *options;
	uint64_t instance; /* random: this process */
	struct dl_loop loop;
	struct dl_layout layout; /* from the first welcome on, as all below */
	char run[DL_NAME_MAX + 1];
	uint64_t epoch;		   /* of the last welcome */
	char name[DL_NAME_MAX + 1]; /* the options', then as welcomed */
	uint64_t slot;		    /* of its data, likewise */
	struct dl_scratch scratch;
	struct dl_learn *core; /* NULL before */
	struct weights weights;
	struct dl_rate rate; /* of pushes */
	struct donated donated;
	struct trainer trainer;
	struct saves saves;
	struct uplink uplink;
	struct serving serving;
	struct cmd_status status;
	int64_t shown_at; /* the last status line */
	uint64_t shown_tokens;
	double loss;
	struct drain drain;
	int finishing;	  /* trainer and link are being closed */
	int over;	  /* leave the loop with code */
	int code;
};

/* Runs until the run or the learner ends; an exit code. */
int learner_run(const struct learn_options *o);

/* Begins to take part in the run that the first welcome describes. */
int learner_begin(
	struct learner *l, const struct dl_message *welcome, struct dl_err *e);
/* Gives the core an event and carries out what it decides. */
void learner_event(struct learner *l, struct dl_learn_event *ev);
/* The end of the process, for that reason. */
void learner_fail(struct learner *l, const struct dl_err *why);
/* The run is over: stop the trainer and leave. */
void learner_finish(struct learner *l);

#endif
