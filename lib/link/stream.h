/*
 * A stream: one non-blocking socket that carries frames both ways, plain or,
 * after a handshake, sealed by a session. A connection has a main one.
 */
#ifndef DL_LINK_STREAM_H
#define DL_LINK_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "link/batch.h"
#include "link/frame.h"
#include "link/rate.h"
#include "link/session.h"
#include "link/tcp.h"

struct dl_stream {
	int fd;
	uint64_t bytes_in, bytes_out;
	int64_t heard, sent;  /* when the last byte came, went */
	int deaf;	      /* what still comes is passed over */
	struct dl_rate *rate; /* of what is read, which others may share; NULL:
			       * no limit. Borrowed */
	int closed;	      /* the peer has closed, between two frames */
	int paused;	      /* no frame is taken, what came is kept */
	/* The frame of which a part has been written: the next batch begins
	 * with this very frame. */
	struct {
		enum dl_channel channel;
		size_t n;	/* payload bytes */
		size_t written; /* of head and payload; 0: none is begun */
	} begun;
	/* private */
	struct dl_session *session; /* NULL: plain */
	struct dl_tcp_pace pace;    /* when plain */
	struct dl_buf in;	    /* received, not yet parsed */
	size_t left; /* of a frame of data that has been taken in part */
};

/* Takes over fd, non-blocking; c is the session's beginning (dl_session_new),
 * or NULL for a plain stream; now is monotonic (dl_now). */
void dl_stream_init(struct dl_stream *s, int fd,
	const struct dl_handshake_config *c, int64_t now);
/* Closes fd. */
void dl_stream_release(struct dl_stream *s);

/* Frames can be written: the handshake, if any, is done. */
int dl_stream_ready(const struct dl_stream *s);
/* There is something to write besides frames: the handshake's, or what has been
 * sealed already. */
int dl_stream_waits(const struct dl_stream *s);
/* The public key of the other end of a session that is ready, else NULL. */
const unsigned char *dl_stream_peer(const struct dl_stream *s);

/* Who takes what has come. */
struct dl_stream_taker {
	/* A frame, or a part of one of data; its payload is valid during the
	 * call. */
	int (*frame)(void *ctx, const struct dl_frame *f, struct dl_err *e);
	/* Unless NULL, where the next *n bytes of data go; or NULL, and they
	 * come by frame. */
	void *(*place)(void *ctx, size_t *n);
	/* So many of them are there. */
	int (*placed)(void *ctx, size_t n, struct dl_err *e);
};
/*
 * Reads what has come, a bounded amount, and gives it to the taker, which may
 * pause the stream or make it deaf. 0 while the stream lives; else 69 when the
 * peer is gone ("closed" between frames), 76 for bad frames, or the taker's
 * code.
 */
int dl_stream_read(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, int64_t now, struct dl_err *e);

/*
 * Offers a batch, empty unless the stream is ready, to the socket, once, and
 * uses it up: *frames of it are done with, their memory is the caller's again;
 * *more says that the socket took all it was given and may take more. 0, 69, or
 * 70 when a session can seal no more.
 */
int dl_stream_write(struct dl_stream *s, struct dl_batch *b, size_t *frames,
	int *more, int64_t now, struct dl_err *e);

#endif
