/*
 * One connection: messages and fragments over a non-blocking stream socket,
 * or several of them, driven by the caller's poll loop. It never blocks, and
 * its memory is bounded whatever the peer does.
 *
 *	dl_conn_watch(c, loop, fn, ctx); wait until dl_conn_deadline(c);
 *	fn: if (dl_conn_turn(c, fd, revents, dl_now(), &e))
 *		the connection is over, e says why: dl_conn_release(c)
 *
 * Control messages always go before the next frame of data. Data is sent from
 * the caller's memory and received into it. In a session all waits until the
 * handshake is done.
 *
 * Once both sides have agreed on it, data is striped (link/stripe.h): it goes
 * as pieces over the main stream, which alone carries messages, and over
 * extra ones. Those are made as connections of their own, and adopted when
 * they have said whose they are; when one is lost the rest goes on.
 */
#ifndef DL_LINK_CONN_H
#define DL_LINK_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "link/loop.h"
#include "link/message.h"
#include "link/rate.h"
#include "link/stream.h"
#include "link/stripe.h"
#include "tensor/record.h"

struct dl_conn;

/*
 * Called from dl_conn_work. What they are given is valid during the call. They
 * may send and finish, not release; a code other than 0 ends the connection.
 */
struct dl_conn_handlers {
	/* A control message has come. */
	int (*message)(void *ctx, struct dl_conn *c, const struct dl_message *m,
		struct dl_err *e);
	/* A record of data begins: set *dest to memory for h->data_size
	 * bytes, or leave NULL to skip them. It is written to until `whole`
	 * or the end of the connection. */
	int (*begin)(void *ctx, struct dl_conn *c, const struct dl_message *m,
		const struct dl_header *h, void **dest, struct dl_err *e);
	/* All its bytes are in dest, or were skipped. */
	int (*whole)(void *ctx, struct dl_conn *c, const struct dl_message *m,
		const struct dl_header *h, void *dest, struct dl_err *e);
};

struct dl_conn_config {
	const struct dl_conn_handlers *handlers;
	void *ctx;
	struct dl_limits control; /* of a control message, DL_LIMITS_CONTROL */
	struct dl_limits data;	  /* of a record of data; data = 0: none may
				   * come (yet) */
	size_t queue;		  /* control bytes that may wait: above, the
				   * peer does not read and is dropped */
	int64_t beat_ns;	  /* a heartbeat after so long without sending;
				   * 0: none */
	int64_t silence_ns;	  /* dead after so long without a byte; 0:
				   * never */
	const struct dl_handshake_config *session; /* NULL: plain. What it
						    * points to is borrowed */
	struct dl_rate *rate;  /* of data that is sent, which others may
				* share; NULL: no limit. Borrowed */
	struct dl_rate *reads; /* of all that comes, likewise */
	/* So many bytes of the record of data that is coming are in its dest:
	 * for who can use the first before the last are there. NULL: nobody.
	 * Called as handlers are. */
	void (*came)(void *ctx, uint64_t bytes);
};
#define DL_CONN_QUEUE ((size_t)4 << 20)	  /* usual queue */
#define DL_CONN_HANDSHAKE (5 * DL_SECOND) /* the longest a handshake lasts */

struct dl_conn_item { /* private: a record of data being sent */
	struct dl_conn_item *next;
	uint64_t key;
	struct dl_buf head;
	const unsigned char *data;
	size_t n;
	void (*release)(void *ctx, int sent);
	void *ctx;
};

enum { DL_STREAMS_MAX = 16 };

/* Private: where sending is. */
struct dl_conn_out {
	size_t control_at; /* bytes of the control queue sent */
	struct dl_conn_item *item;
	size_t item_at; /* bytes of item's head and data sent */
	int beat;	/* a heartbeat is due */
};

struct dl_conn_lane { /* private: a stream that carries pieces */
	struct dl_stream *stream;
	struct dl_piece begun; /* of which a part has been written */
	int beat;	       /* a heartbeat is due; main's is in out */
	int full;	       /* the socket took less than there was */
	int fresh;	       /* just adopted: frames may wait in memory */
};

struct dl_conn_stripes {  /* private */
	unsigned streams; /* agreed on, main included */
	struct dl_stripe_out out;
	struct dl_stripe_in in;
	uint64_t base; /* offset of out.item, the first not received */
	uint64_t told; /* what the peer knows to be received */
	int broken;    /* by what an extra stream brought */
	struct dl_conn_lane lane[DL_STREAMS_MAX]; /* 0: main */
};

struct dl_conn {
	struct dl_stream main;
	struct dl_conn_config config; /* limits may be changed any time */
	/* private */
	struct dl_err why;
	struct dl_loop *loop;		 /* that polls; NULL: the caller does */
	struct dl_conn_stripes *stripes; /* NULL: data is not striped */
	int64_t held;			 /* data waits till then, for rate */
	int64_t rests;		    /* nothing is read till then, likewise */
	uint64_t gone_in, gone_out; /* bytes of streams that are lost */
	int64_t handshake;	    /* when it is to be done */
	int64_t finish; /* deadline of dl_conn_finish; 0: not asked for */
	int shut;	/* nothing more is sent */
	int full;	/* main took less than there was, when it is not
			 * striped */
	int smallest_first;
	struct dl_reader reader[DL_CHANNEL_DATA + 1]; /* control, data */
	struct dl_buf control_in; /* data of the control message coming */
	struct dl_message coming; /* the record of data coming */
	void *dest;
	struct dl_buf control; /* control records to send */
	struct dl_conn_out out;
};

/* Takes over fd, non-blocking; now is monotonic (dl_now). */
void dl_conn_init(struct dl_conn *c, int fd, const struct dl_conn_config *cf,
	int64_t now);
/* Closes its descriptors, which are no longer watched, and releases what is
 * queued (as not sent). */
void dl_conn_release(struct dl_conn *c);

/* The poll events that main waits for. */
short dl_conn_events(const struct dl_conn *c);
/* Sees that l calls fn(ctx, fd, revents) for all its descriptors; called again
 * whenever the loop is about to wait. */
void dl_conn_watch(
	struct dl_conn *c, struct dl_loop *l, dl_loop_fn *fn, void *ctx);
/* When dl_conn_work is due without any event; INT64_MAX for never. */
int64_t dl_conn_deadline(const struct dl_conn *c);
/* The public key of the peer, in a session whose handshake is done; else NULL.
 * It is proven by the first message, not before. */
const unsigned char *dl_conn_peer(const struct dl_conn *c);
/*
 * Reads, calls the handlers, writes. 0 while the connection lives; else it is
 * over: 69 the peer is gone or silent, 76 it broke the protocol, 75 it does
 * not read, a handler's code, or the one that a peer who refused a session
 * gave. 69 "closed" is an end between records.
 */
int dl_conn_turn(struct dl_conn *c, int fd, short revents, int64_t now,
	struct dl_err *e);
/* The same for main. */
int dl_conn_work(
	struct dl_conn *c, short revents, int64_t now, struct dl_err *e);

/*
 * Both sides agree, before any data comes or goes, that it goes as pieces over
 * at most that many streams, 2 to DL_STREAMS_MAX, main included; window as
 * dl_stripe_out_init has it. The window is memory that the connection may take
 * from now on, beside 256 KiB a stream and what waits to be sent.
 */
void dl_conn_stripe(struct dl_conn *c, unsigned streams, uint64_t window);
/* How many streams are missing of those agreed on. */
unsigned dl_conn_missing(const struct dl_conn *c);
/* From within a handler: the last has been said on c, to be adopted; what
 * still comes is for the adopter. */
void dl_conn_offer(struct dl_conn *c);
/* May it be adopted: offered, and all that was queued is on its way? */
int dl_conn_offered(const struct dl_conn *c);
/* The main stream of offered becomes one more of c's, which misses one;
 * offered is released. Not from within a handler. */
void dl_conn_adopt(struct dl_conn *c, struct dl_conn *offered, int64_t now);

/* Bytes of all its streams. */
uint64_t dl_conn_bytes_in(const struct dl_conn *c);
uint64_t dl_conn_bytes_out(const struct dl_conn *c);

/* Queues a message of a kind without data; nothing on one that is over. */
void dl_conn_send(struct dl_conn *c, const struct dl_message *m);
/*
 * Queues a record of data: its header (dl_message_pack_data and the like;
 * emptied, c takes the bytes), then n bytes at data, which stay the caller's
 * and unchanged until release(ctx, sent) is called, once: when it has been sent
 * whole (when striped: received whole), or was replaced or lost with the
 * connection (sent = 0). An item of the same key, not 0, of which nothing has
 * been sent, is replaced and gives up its place. release may be NULL; it must
 * not use c.
 */
void dl_conn_send_data(struct dl_conn *c, uint64_t key, struct dl_buf *head,
	const void *data, size_t n, void (*release)(void *ctx, int sent),
	void *ctx);
/* From now on items of which nothing has been sent go by their size, smallest
 * first, in their order where they are equal: for who has little time left. */
void dl_conn_smallest_first(struct dl_conn *c);
/* Is there an item of that key, not 0, of which nothing has been sent? */
int dl_conn_waits(struct dl_conn *c, uint64_t key);

/* Writes what the socket takes at once, from within a handler too: for what a
 * newer one would replace. If it fails, dl_conn_work says so. */
void dl_conn_flush(struct dl_conn *c, int64_t now);

/* Bytes that wait to be written, control and data. */
uint64_t dl_conn_waiting(const struct dl_conn *c);

/*
 * The last words have been queued: what waits is written, nothing more is
 * queued, what still comes is passed over, and the connection is over (69
 * "finished") when the peer has closed too or at the deadline.
 */
void dl_conn_finish(struct dl_conn *c, int64_t deadline);

#endif
