/*
 * Striping: one stream of bytes sent as pieces over several connections. Pure:
 * both sides keep account, the caller has the bytes and the sockets.
 *
 * The bytes are numbered from 0 by their offset. The sender gives pieces to
 * whichever stream can take one, never more than the window beyond what the
 * receiver says it has of all that went before; what a lost stream had is
 * given again to others. The receiver hands the bytes on in order. Pieces that
 * come early are kept, inside the window only; pieces may come again and may
 * overlap: bytes that were handed on are passed over, of others the last copy
 * counts.
 */
#ifndef DL_LINK_STRIPE_H
#define DL_LINK_STRIPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	DL_STRIPE_PIECES = 4096,		/* out at once, at most */
	DL_STRIPE_SPANS = DL_STRIPE_PIECES / 2, /* kept at once, at most:
						 * they lie apart */
};

#define DL_WINDOW_MIN ((uint64_t)1 << 20)
#define DL_WINDOW_MAX ((uint64_t)1 << 30)
#define DL_WINDOW ((uint64_t)32 << 20) /* usual */

struct dl_piece {
	uint64_t offset;
	uint64_t n;
	/* private */
	unsigned stream;
	int again; /* it had been given before, and was lost */
};

/* The sender's side: which piece is out on which stream. */
struct dl_stripe_out {
	uint64_t window;
	uint64_t received; /* the peer has all before it */
	uint64_t given;	   /* all before it has been given */
	/* private: pieces out, by offset, in a ring */
	struct dl_piece *piece;
	size_t first, pieces, lost;
};

/* window: what the receiver keeps, DL_WINDOW_MIN to DL_WINDOW_MAX. */
void dl_stripe_out_init(struct dl_stripe_out *s, uint64_t window);
void dl_stripe_out_release(struct dl_stripe_out *s);

/*
 * The next piece for that stream: at most max bytes, of those before end, the
 * bytes there are so far; what was lost goes first. 0 when there is none, for
 * now. max is the same in each call.
 */
int dl_stripe_give(struct dl_stripe_out *s, unsigned stream, uint64_t end,
	size_t max, struct dl_piece *out);
/* Nothing of that piece was sent. Pieces come back in the reverse order of
 * their giving, nothing else happening between. */
void dl_stripe_take_back(struct dl_stripe_out *s, const struct dl_piece *p);
/* Would dl_stripe_give have one? */
int dl_stripe_can_give(const struct dl_stripe_out *s, uint64_t end);
/* The stream is lost: what it had is given again. */
void dl_stripe_lost(struct dl_stripe_out *s, unsigned stream);
/* The peer has all before offset; 76 when it cannot, or had more already. */
int dl_stripe_received(
	struct dl_stripe_out *s, uint64_t offset, struct dl_err *e);

/* The receiver's side. */
struct dl_stripe_in {
	uint64_t window;
	uint64_t next; /* all before it has been handed on */
	/* private */
	const unsigned char *direct; /* of the last piece, at next */
	size_t direct_n;
	unsigned char *ring; /* window bytes; NULL until one comes early */
	struct dl_span {
		uint64_t from, to;
	} * span; /* in the ring: after next, apart, by offset */
	size_t spans;
};

void dl_stripe_in_init(struct dl_stripe_in *s, uint64_t window);
void dl_stripe_in_release(struct dl_stripe_in *s);

/*
 * A piece of n bytes at p has come. 76 when it is empty, ends beyond the
 * window, or is one early piece too many; nothing is allocated or changed
 * then. Otherwise dl_stripe_take is due, until it returns 0.
 */
int dl_stripe_put(struct dl_stripe_in *s, uint64_t offset, const void *p,
	size_t n, struct dl_err *e);
/* The next bytes in order, valid until the next put: of a piece that came in
 * order they are the piece itself. How many; 0 when the next are missing. */
size_t dl_stripe_take(struct dl_stripe_in *s, const unsigned char **p);

#endif
