/*
 * The parts of a connection, for conn*.c.
 */
#ifndef DL_LINK_CONN_IO_H
#define DL_LINK_CONN_IO_H

#include "link/conn.h"

/* A stream's turn at writing ends after so many batches. */
enum { DL_CONN_CALLS = 4 };

/* Reads what has come on main, a bounded amount, and calls the handlers; 0 or
 * why the connection is over. */
int dl_conn_read(struct dl_conn *c, int64_t now, struct dl_err *e);
/* The same on an extra stream; if it is not stripes->broken, only that stream
 * is over. */
int dl_conn_read_extra(
	struct dl_conn *c, struct dl_stream *s, int64_t now, struct dl_err *e);

/* 1 when there is something that main may write now, a heartbeat included. */
int dl_conn_has_output(const struct dl_conn *c);
/* 1 when not all that was queued has been sent and, if striped, received. */
int dl_conn_has_queue(const struct dl_conn *c);
/* Writes what main takes, a bounded amount; 0 or 69. */
int dl_conn_write(struct dl_conn *c, int64_t now, struct dl_err *e);
/* Drops all that waits. */
void dl_conn_drop_output(struct dl_conn *c);

/* A batch for one stream, and where each of its frames leads. */
struct dl_conn_plan {
	struct dl_batch batch;
	struct dl_conn_out out; /* once all of it is sent */
	struct dl_rate rate;	/* likewise */
	int64_t now;
	struct dl_conn_planned {
		struct dl_conn_out after;
		struct dl_piece piece;
		unsigned char offset[DL_FRAME_OFFSET];
	} frame[DL_BATCH_FRAMES];
};

void dl_plan_begin(
	struct dl_conn_plan *p, const struct dl_conn *c, int64_t now);
/* Control bytes not planned yet. */
size_t dl_plan_control_left(
	const struct dl_conn_plan *p, const struct dl_conn *c);
/* A frame of the next n control bytes; of 0 a heartbeat. */
void dl_plan_control(struct dl_conn_plan *p, const struct dl_conn *c, size_t n);
/* May data be planned now? */
int dl_plan_allows(const struct dl_conn_plan *p);
/* The frame begun last is of data; adds n bytes from `at` of an item to it. */
void dl_plan_data(struct dl_conn_plan *p, const struct dl_conn_item *item,
	size_t at, size_t n);
/* Its first frames have been sent: their data counts, for the rate, which may
 * hold back what is left. */
void dl_plan_spend(
	const struct dl_conn_plan *p, struct dl_conn *c, size_t frames);
/* c's sending has come so far. */
void dl_conn_advance(struct dl_conn *c, const struct dl_conn_out *to);

size_t dl_conn_item_size(const struct dl_conn_item *item);
void dl_conn_item_free(struct dl_conn_item *item, int sent);

/* The stripes' half; c->stripes is not NULL. */
void dl_stripes_free(struct dl_conn *c);
/* Is there something that stream i may write now? */
int dl_stripes_has_output(const struct dl_conn *c, unsigned i);
int dl_stripes_write(
	struct dl_conn *c, unsigned i, int64_t now, struct dl_err *e);
/* Releases the items that the peer has received. */
void dl_stripes_settle(struct dl_conn *c);
/* Where the first item waits of which nothing has been given. */
struct dl_conn_item **dl_stripes_whole(struct dl_conn *c);
/* Reads, looks at the time and writes on all extra streams; those that fail
 * are lost. Not 0: the connection is over. */
int dl_stripes_turn(struct dl_conn *c, int fd, short revents, int64_t now,
	struct dl_err *e);
int64_t dl_stripes_deadline(const struct dl_conn *c);
void dl_stripes_watch(struct dl_conn *c, dl_loop_fn *fn, void *ctx);

#endif
