/*
 * A guess at what a stream brings next: in the middle of a record's data that
 * is more of it, in frames as large as they can be. So its bytes are received
 * where they belong, around the heads of frames; what is not as guessed is
 * moved. Pure: the caller has the socket.
 */
#ifndef DL_LINK_GUESS_H
#define DL_LINK_GUESS_H

#include <stddef.h>
#include <sys/uio.h>

#include "base/mem.h"
#include "link/frame.h"

enum { DL_GUESS_FRAMES = 4, DL_GUESS_PIECES = 2 * DL_GUESS_FRAMES + 1 };
/* The most that a guess holds. */
#define DL_GUESS_BYTES                                                         \
	((size_t)(DL_GUESS_FRAMES + 1) * (DL_FRAME_HEAD + DL_FRAME_PAYLOAD))

struct dl_guess {
	struct iovec piece[DL_GUESS_PIECES]; /* to be received into */
	size_t pieces;
	/* private */
	size_t inside; /* 1: the first piece belongs to a frame that is begun */
	unsigned char head[DL_GUESS_FRAMES][DL_FRAME_HEAD]; /* as it came */
	unsigned char expected[DL_GUESS_FRAMES][DL_FRAME_HEAD];
};

/* Of the frame of data that is begun `left` bytes are to come (0: none is); n >
 * 0 more bytes of the record's data, which go to p. */
void dl_guess_make(struct dl_guess *g, size_t left, void *p, size_t n);

/*
 * The first `got` bytes of its pieces have come. Returns how many of them are
 * data in their place; *left is changed to what is still to come of the frame
 * that they end in. All that follows is appended to rest, as it came.
 */
size_t dl_guess_check(
	struct dl_guess *g, size_t got, size_t *left, struct dl_buf *rest);

#endif
