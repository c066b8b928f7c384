/*
 * What happened when: a bounded number of buckets of equal width, which becomes
 * twice as wide whenever the run has outgrown them. Nothing is left out, it is
 * told less finely.
 */
#ifndef DL_STATE_HISTORY_H
#define DL_STATE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

enum { DL_HISTORY_ROOM = 1024 };

/* What a member does at a time. */
enum dl_stat_state {
	DL_STAT_UNKNOWN, /* not heard of yet, or the syncer is away */
	DL_STAT_GONE,	 /* has left, and said so */
	DL_STAT_AWAY,	 /* is lost */
	DL_STAT_JOINING, /* is connected, and has made no step yet */
	DL_STAT_TRAINING,
	DL_STAT_STALLED, /* is connected, and makes no steps */
	DL_STAT_STATES
};
extern const char *const dl_stat_state_words[DL_STAT_STATES + 1];
/* Of a timeline, a letter a state. */
extern const char dl_stat_state_letters[DL_STAT_STATES + 1];

struct dl_history_part {
	uint64_t tokens; /* made by members */
	double wasted;	 /* tokens, as the parts of the model they were of */
	uint64_t refused;
	uint64_t bytes_up, bytes_down;
	uint64_t merges;
	uint64_t members, reports;	 /* of closed rounds */
	uint64_t losses;		 /* of so many steps: */
	double loss, loss_min, loss_max; /* NaN when there are none */
	double training_ns;		 /* of members, summed */
	double due_ns; /* the same of those that were to train */
};

struct dl_history {
	int64_t width; /* nanoseconds */
	size_t n;      /* buckets */
	struct dl_history_part bucket[DL_HISTORY_ROOM];
};

void dl_history_init(struct dl_history *h);
/* Is there no room for time t, from the beginning on? Then dl_history_fold and
 * the like of all that has its buckets. */
int dl_history_full(const struct dl_history *h, int64_t t);
void dl_history_fold(struct dl_history *h);
/* The bucket of time t, for which there is room; those before it are there. */
struct dl_history_part *dl_history_at(struct dl_history *h, int64_t t);

void dl_history_loss(struct dl_history_part *b, double loss);

/* A member was in that state from one time to another: into its own part,
 * DL_HISTORY_ROOM times DL_STAT_STATES nanoseconds, and the buckets'. */
void dl_history_spend(struct dl_history *h, float *held, int64_t from,
	int64_t to, enum dl_stat_state state);
void dl_history_fold_held(float *held);
/* The state that each of n buckets was in for longest, as letters; room for a
 * NUL after them. */
void dl_history_timeline(const float *held, size_t n, char *out);

#endif
