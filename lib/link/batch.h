/*
 * A batch: the frames that go out next, as pieces of the caller's memory. It
 * is a proposal, made anew for each write, so that control can overtake what
 * the socket did not take.
 */
#ifndef DL_LINK_BATCH_H
#define DL_LINK_BATCH_H

#include <stddef.h>
#include <sys/uio.h>

#include "link/frame.h"

enum {
	DL_BATCH_FRAMES = 32,
	DL_BATCH_PIECES = 4,	  /* of a frame, its head included */
	DL_BATCH_BYTES = 1 << 20, /* no frame is added above */
};

struct dl_batch {
	size_t frames, pieces, bytes;
	struct iovec piece[DL_BATCH_FRAMES * DL_BATCH_PIECES];
	struct dl_batch_frame {
		unsigned char head[DL_FRAME_HEAD];
		enum dl_channel channel;
		size_t n;    /* payload bytes */
		size_t from; /* its first piece */
	} frame[DL_BATCH_FRAMES];
};

/* Empties it; its arrays need no other beginning. */
void dl_batch_clear(struct dl_batch *b);
/* 1 when no frame fits any more. */
int dl_batch_full(const struct dl_batch *b);
/* Begins a frame of n payload bytes, n <= DL_FRAME_PAYLOAD, in one that is not
 * full. The pieces that follow have n bytes in all. */
void dl_batch_frame(struct dl_batch *b, enum dl_channel channel, size_t n);
/* Adds a piece of the frame begun last, at most DL_BATCH_PIECES - 1 of them;
 * it stays the caller's. */
void dl_batch_add(struct dl_batch *b, const void *p, size_t n);

#endif
