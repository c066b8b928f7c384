/*
 * The state of a simulated fleet, shared by the files of this room that make
 * it go and by no other.
 */
#ifndef DL_SIM_WORLD_H
#define DL_SIM_WORLD_H

#include "base/rng.h"
#include "sim/fleet.h"
#include "sim/queue.h"

/* Learners are called so, with their number behind. */
#define NODE_NAME "learner-"
enum { NODE_PREFIX = sizeof NODE_NAME - 1 };

/* A site's link: when the next fragment can start on it. What a broken
 * connection had under way still takes its time. */
struct site {
	int64_t up_free, down_free;
};

/* Globals of a fragment: one that waits for the link is replaced by a newer
 * one. */
struct waiting {
	int64_t begins;
	struct event *event; /* good until it begins */
	uint64_t sent;	     /* that the learner has not applied yet */
};

/* A connection of a learner to a syncer; gen tells it from earlier ones. */
struct link {
	int up;
	uint64_t gen;
	struct waiting *waiting; /* P */
};

/* A push that the learner's driver keeps until it is settled. */
struct kept {
	int sent;      /* its copy was made */
	size_t record; /* in the ledger */
	struct dl_sync_event push;
};

/* A learner: its name, whatever process runs under it, its trainer. */
struct node {
	const struct dl_fleet_learner *config;
	char name[DL_NAME_MAX + 1];
	struct dl_learn *core; /* NULL: no process */
	uint64_t gen, instance;
	int draining, finished;
	uint32_t done;	   /* syncers that said the run is over */
	struct link *link; /* one a syncer */
	struct kept *kept;
	size_t kepts, kept_cap;
	struct dl_version *version; /* P: last applied */
	int training;
	int broken;	  /* its trainer died in a copy */
	uint64_t trainer; /* tells its trainer from earlier ones */
	int64_t load_ns;  /* until a new trainer can go */
	int64_t mean_ns;  /* of its steps */
	int64_t step_ns;  /* of the step in hand */
	int64_t born_at;
	uint64_t failed;	  /* steps of copies that failed */
	struct dl_account before; /* its account when this process came */
	uint64_t uncounted; /* merged, and the syncer died before counting */
	/* what syncers counted, over all their lives */
	uint64_t merged, late, refused;
	struct dl_fleet_line line;
};

/* A push that a syncer's driver holds. */
struct held {
	size_t record;
	int live;
	size_t free; /* when not: the next such */
};

/* A syncer: its store and whatever process runs on it. */
struct hub {
	struct dl_sync *core; /* NULL: down */
	uint64_t gen;
	int over; /* the run is */
	struct dl_sync_saved head;
	int64_t wake_at; /* the earliest wake that was asked for */
	struct held *held;
	size_t helds, held_cap, held_free; /* as places of the ledger */
	struct dl_sync_action *merge;	   /* P: in hand, or no parts */
	struct dl_version *version;	   /* P: the last made */
	uint64_t rounds, merges, crashes;
	/* the push being taken */
	const struct event *push;
	int answers;
};

enum what {
	TO_SYNCER,  /* sync, over a link */
	TO_LEARNER, /* learn, over a link */
	BORN,
	DIE,
	KILL, /* for down nanoseconds, whichever process it is */
	DRAIN,
	CONNECT,
	CUT,
	LOST,  /* the learner notices */
	LEAVE, /* the syncer does */
	STEP,
	TRAINER_DIES,
	WAKE,
	COMMIT,
	CRASH,
	RESTART,
	END,
};

struct event {
	enum what what;
	uint32_t m, s, p;
	uint64_t gen; /* of what it is about; void when that is gone */
	struct event *next; /* of the free ones */
	size_t record;
	int lie;       /* made up: must be refused */
	int regrouped; /* BORN: others know of it */
	int64_t down;
	struct dl_version *versions, *origins; /* owned; or NULL */
	uint64_t *seqs;
	union {		    /* of messages; not zeroed before */
		struct dl_sync_event sync;
		struct dl_learn_event learn;
	};
};

struct world {
	const struct dl_fleet_config *config;
	uint32_t fragments;
	uint32_t *syncer; /* P: the syncer of each */
	int64_t now;
	struct dl_rng rng;
	uint64_t gens;
	struct dl_queue queue;
	struct event *free;
	struct node *node;
	struct site *site;
	struct hub *hub;
	struct dl_ledger ledger;
	uint64_t tokens;		 /* that were trained on */
	int64_t regroup_at, regroup_end; /* the last, or the next */
	int ending;
	uint32_t over;	/* syncers whose run is */
	int64_t end_by; /* the end is over by then, or it hangs */
};

/* fleet.c */
struct event *post(struct world *w, int64_t after, enum what what);
struct event *post_message(struct world *w, int64_t after, enum what what);
/* As post, after a time drawn with that mean; NULL and nothing posted when
 * mean is 0. */
struct event *post_random(struct world *w, int64_t mean, enum what what);
int is_calm(const struct world *w); /* nothing breaks any more */
int64_t draw(struct world *w, int64_t mean);
int chance(struct world *w, double p);
/* A learner comes or goes. */
void regroup(struct world *w);

/* wire.c */
void connect_link(struct world *w, uint32_t m, uint32_t s);
void close_link(struct world *w, uint32_t m, uint32_t s);
void cut_link(struct world *w, uint32_t m, uint32_t s);
void send_up(struct world *w, uint32_t m, uint32_t s,
	const struct dl_sync_event *ev, size_t record);
struct event *send_down(struct world *w, uint32_t m, uint32_t s,
	const struct dl_learn_event *ev);

/* node.c */
void node_born(struct world *w, uint32_t m);
/* Mean time until a process that ended has a successor. */
int64_t node_away(const struct world *w, uint32_t m);
void node_die(struct world *w, uint32_t m, int64_t down);
/* Here and below, ev is told when it is. */
void node_event(struct world *w, uint32_t m, struct dl_learn_event *ev);
void node_step(struct world *w, uint32_t m);
void node_trainer_dies(struct world *w, uint32_t m);
void node_check(struct world *w, uint32_t m);

/* hub.c */
void hub_start(struct world *w, uint32_t s);
void hub_push(struct world *w, struct event *e);
void hub_event(struct world *w, uint32_t s, struct dl_sync_event *ev);
void hub_plain(struct world *w, uint32_t s, enum dl_sync_event_kind kind);
void hub_commit(struct world *w, uint32_t s, uint32_t p);
void hub_wake(struct world *w, uint32_t s);
void hub_crash(struct world *w, uint32_t s, int graceful);
void hub_collect(struct world *w, uint32_t s);

#endif
