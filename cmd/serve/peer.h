/*
 * Those who connect to a syncer: learners, observers who want the current
 * model, and enders who ask for the end of the run.
 */
#ifndef CMD_SERVE_PEER_H
#define CMD_SERVE_PEER_H

#include "link/address.h"
#include "link/authorized.h"
#include "link/bucket.h"
#include "link/conn.h"
#include "sync/sync.h"

struct copy;
struct push;
struct server;

enum peer_state {
	PEER_STRANGER, /* has not said hello */
	PEER_WAITING,  /* a learner whose name another holds: see probe_until */
	PEER_LEARNER,  /* the core knows it */
	PEER_OBSERVER, /* the model is sent to it, and nothing heard */
	PEER_ENDER,
	PEER_CHECKPOINT, /* takes one */
	PEER_STREAM,	 /* about to be a stream of a learner's connection */
	PEER_LEAVING,	 /* only what is queued is still sent */
};

struct peer {
	struct peer *next;
	struct server *server;
	struct dl_conn conn;
	enum peer_state state;
	char address[DL_PEER_MAX];
	char name[DL_NAME_MAX + 1]; /* "" before hello */
	uint64_t instance;
	const struct dl_authorized *may; /* NULL: everything */
	struct dl_rate reads;		 /* of it, if it has one */
	struct dl_bucket words, wants;	 /* messages; see hear.h */
	uint64_t slot; /* of a group's member, else DL_SLOT_NONE */
	int placed;    /* any name of its group would have done */
	int unwelcome; /* leaving: it was refused, or its rights are over */
	int parts;     /* it has said bye */
	/* its hello, for the core */
	uint64_t clock, steps, tokens;
	/* P: what its hello says it has, then what it was sent; 0.0: unknown */
	struct dl_version *versions;
	struct sent {
		uint64_t elements, bytes; /* of globals, since `applied` */
	} * sent;
	uint64_t streams, window; /* that hello wants; granted: welcome */
	struct dl_address *serve; /* where its state can be had, by whoever has
				   * been named to it; NULL: nowhere */
	uint64_t named;	  /* first to a joiner, as the nth; 0: not yet */
	int decodes;	  /* the codec of the run's updates */
	int64_t deadline; /* of its hello or end; of the probe while it waits;
			   * of the next byte that an observer reads */
	uint64_t out;	  /* bytes sent to it then */
	int64_t came;	  /* when it said hello */
	int64_t heard;	  /* when the one probed was last heard before */
	struct push *coming;
	struct copy *copy; /* of a checkpoint, for it */
	int over;	   /* to be freed after this turn */
};

/* Takes in whoever waits at the listener; not 0 when some have to wait on. */
int peers_accept(struct server *s, int listener, int64_t now);
/* Deadlines, probes and output of all; frees those that are over. */
void peers_work(struct server *s, int64_t now);
int64_t peers_wake(const struct server *s);
void peers_free(struct server *s);

/* The learner that the core knows by that name and instance, or NULL. */
struct peer *peers_find(
	const struct server *s, const char *name, uint64_t instance);
/* The one whose connection that stream may become a part of, or NULL. */
struct peer *peers_find_owner(const struct peer *stream);
/* Why it is not let in, and that is all. */
void peer_refuse(struct peer *peer, int code, const char *text, int64_t now);
void peer_send_welcome(struct peer *peer, uint64_t clock);
/* Says bye to everybody of that state, and lets them go. */
void peers_bye(
	struct server *s, enum peer_state state, enum dl_bye bye, int64_t now);
/* Those who have not said hello, without a word. */
void peers_drop_strangers(struct server *s);
/* Says bye, sends what is queued, and nothing after that. */
void peer_bye(struct peer *peer, enum dl_bye bye, int64_t now);
void peer_leave(struct peer *peer, int64_t deadline); /* without a bye */

/* Its connection is over: it is closed, and the core hears of a learner's.
 * Not from within that connection's handlers. */
void peer_drop(struct peer *peer, const struct dl_err *why);
/* An event of that learner, now. */
void peer_event(const struct peer *peer, enum dl_sync_event_kind kind,
	struct dl_sync_event *ev);

#endif
