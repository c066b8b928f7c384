/*
 * A learner's link to its syncer: it begins, carries messages both ways as
 * events of the core, and begins again when it is lost. What carries them is a
 * socket (unix:, tcp:, exec:) or a spool (dir:).
 */
#ifndef CMD_LEARN_UPLINK_H
#define CMD_LEARN_UPLINK_H

#include "cmd/learn/coming.h"
#include "cmd/learn/streams.h"
#include "learn/learn.h"
#include "link/address.h"
#include "link/child.h"
#include "link/conn.h"
#include "link/errand.h"

struct learner;
struct push;
struct spool_link;

/* Where the syncer's name leads to now, found out beside the loop: a name
 * server that is silent stops no trainer. */
struct lookup {
	struct dl_errand errand;
	struct learner *learner;
	unsigned nth; /* of its addresses */
	struct dl_address address;
	int code;
	struct dl_err err;
};

struct uplink {
	const struct uplink_carrier *carrier;
	struct spool_link *spool;   /* NULL for sockets */
	struct dl_errands *errands; /* of sockets: lookups; or NULL */
	struct lookup lookup;
	struct dl_address at; /* where conn leads */
	struct dl_conn conn;
	struct streams streams; /* of conn */
	struct dl_child child; /* of an exec: link */
	int open;	       /* conn is */
	int welcomed;	       /* and the syncer has answered hello */
	int parting;	       /* bye has been said */
	int ended;	       /* the syncer has said that the run is over */
	int barred;	       /* has had pushes that it may not make */
	int fatal;	       /* there is no use in trying again */
	unsigned failures;     /* in a row, without a welcome */
	int64_t away_at;       /* the first of them; INT64_MAX: none */
	int64_t retry_at;      /* INT64_MAX: connected, looking up, or child
				* still runs */
	struct dl_err why;     /* the connection was lost */
	uint64_t bytes_in, bytes_out; /* of connections before this one */
	struct coming coming;
};

void uplink_init(struct learner *l, enum dl_link_kind kind);
void uplink_release(struct learner *l);

/* Begins when it is time, sees to silence; before and after each turn of the
 * loop. */
void uplink_work(struct learner *l, int64_t now);
int64_t uplink_wake(const struct learner *l);

/* The learner is about to leave: a syncer that is away is tried at once, and
 * more often than before. */
void uplink_hurry(struct learner *l, int64_t now);
/* Sends a message, if the syncer is there. */
void uplink_send(struct learner *l, const struct dl_message *m);
/* Sends a push whose data are there, likewise; the core asks again after the
 * next welcome. */
void uplink_push(struct learner *l, struct push *push);
/* Says bye, and nothing after that. */
void uplink_part(struct learner *l, int64_t now);
/* Adds what a push's record says and its tensors to w. */
void uplink_push_record(
	const struct learner *l, const struct push *push, struct dl_writer *w);
/* Nothing is on its way any more. */
int uplink_closed(const struct learner *l);

/* How connections to the syncer are set up, all but their handlers; session is
 * memory for a part of it. */
void uplink_config(struct learner *l, struct dl_conn_config *c,
	struct dl_handshake_config *session);

/* What the above call. */
struct uplink_carrier {
	void (*work)(struct learner *l, int64_t now);
	int64_t (*wake)(const struct learner *l);
	void (*hurry)(struct learner *l, int64_t now);
	void (*send)(struct learner *l, const struct dl_message *m);
	void (*push)(struct learner *l, struct push *push);
	void (*part)(struct learner *l, int64_t now);
	int (*closed)(const struct learner *l);
	void (*release)(struct learner *l);
};
extern const struct uplink_carrier uplink_socket, uplink_spool;

#endif
