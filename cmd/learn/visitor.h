/*
 * One who came to a donor: a guest who takes its state, or somebody who has
 * still to show that it is one.
 */
#ifndef CMD_LEARN_VISITOR_H
#define CMD_LEARN_VISITOR_H

#include "cmd/fetch/give.h"
#include "cmd/learn/serving.h"
#include "link/conn.h"

struct visitor {
	struct visitor *next;
	struct learner *learner;
	struct dl_conn conn;
	enum {
		VISITOR_STRANGER, /* has not said hello */
		VISITOR_UNNAMED,  /* the syncer may be about to name it */
		VISITOR_WAITING,  /* for an export */
		VISITOR_TAKING,
		VISITOR_LEAVING, /* only what is queued is still sent */
	} state;
	char address[DL_PEER_MAX];
	char name[DL_NAME_MAX + 1]; /* of the guest; "" before */
	uint64_t clock;		    /* that it wants at least */
	int64_t deadline;	    /* of that state */
	int64_t came;		    /* when it was told of the state */
	struct give *give;
	int64_t moved;	    /* last seen to take something ... */
	uint64_t out, sent; /* ... when so much had gone out */
	int over;	    /* to be freed */
};

/* The one at fd is taken in. */
void visitor_enter(struct learner *l, int fd, int64_t now);
/* All that is due for all of them. */
void visitors_work(struct learner *l, int64_t now);
int64_t visitors_wake(const struct learner *l);
void visitors_free(struct learner *l);
/* Makes room for one more, if need be of the oldest who is no guest yet. */
void visitors_make_room(struct learner *l);

#endif
