/*
 * A learner's link to its syncer: connects, says hello, carries messages both
 * ways, and connects again, after pauses that grow, when it is lost.
 */
#ifndef CMD_LEARN_UPLINK_H
#define CMD_LEARN_UPLINK_H

#include "learn/learn.h"
#include "link/child.h"
#include "link/conn.h"

struct learner;
struct push;

struct uplink {
	struct dl_conn conn;
	struct dl_child child; /* of an exec: link */
	int open;	       /* conn is */
	int welcomed;	       /* and the syncer has answered hello */
	int parting;	       /* bye has been said */
	int ended;	       /* the syncer has said that the run is over */
	int fatal;	       /* there is no use in trying again */
	unsigned failures;     /* in a row, without a welcome */
	int64_t retry_at;      /* INT64_MAX: connected, or child still runs */
	struct dl_err why;     /* the connection was lost */
	uint64_t bytes_in, bytes_out; /* of connections before this one */
	float *coming;		      /* buffer of the global that comes */
	uint32_t coming_fragment;
};

void uplink_release(struct learner *l);

/* Connects when it is time, sees to silence; before and after each turn of
 * the loop. */
void uplink_work(struct learner *l, int64_t now);
int64_t uplink_wake(const struct learner *l);

/* Sends a message, if the syncer is there. */
void uplink_send(struct learner *l, const struct dl_message *m);
/* Sends a push whose delta is there, likewise; the core asks again after the
 * next welcome. */
void uplink_push(struct learner *l, struct push *push);
/* Says bye, and nothing after that. */
void uplink_part(struct learner *l, int64_t now);
/* The connection is closed, and its command has ended. */
int uplink_closed(const struct learner *l);

#endif
