/*
 * Frames: how a stream link carries several channels.
 *
 * A frame is a u16 length (little-endian) of what follows, a u8 channel and
 * the payload. Control and data are byte streams of records, cut anywhere.
 * Control always goes first; an empty frame on it is a heartbeat. Where data
 * is striped (link/stripe.h) it comes as pieces: a u64 offset and the bytes;
 * and a u64 says before which offset all has been received.
 * Channel and payload leave 16 bytes below the largest u16, so that a session
 * can seal a frame and its length still fits.
 */
#ifndef DL_LINK_FRAME_H
#define DL_LINK_FRAME_H

#include <stddef.h>

#include "base/err.h"

enum dl_channel {
	DL_CHANNEL_CONTROL,
	DL_CHANNEL_DATA,
	DL_CHANNEL_PIECES,
	DL_CHANNEL_RECEIVED,
	DL_CHANNELS
};

enum {
	DL_FRAME_HEAD = 3,	  /* bytes before the payload */
	DL_FRAME_PAYLOAD = 65518, /* largest payload: 65,519 with the channel */
	DL_FRAME_OFFSET = 8,	  /* of a piece, before its bytes */
};

struct dl_frame {
	enum dl_channel channel;
	const unsigned char *payload; /* inside what was parsed */
	size_t n;
};

/* Writes the head of a frame of n payload bytes, n <= DL_FRAME_PAYLOAD. */
void dl_frame_head(
	unsigned char out[DL_FRAME_HEAD], enum dl_channel channel, size_t n);

/*
 * The frame at the front of n received bytes: sets *used to its whole size, or
 * to 0 while it is incomplete. 76 for an empty length, one above the limit, an
 * unknown channel or an empty frame on a data channel; known from the head
 * alone, before the payload has come.
 */
int dl_frame_parse(struct dl_frame *f, const void *p, size_t n, size_t *used,
	struct dl_err *e);

/* The same of what follows the length, n > 0: looks at the channel alone. */
int dl_frame_body(
	struct dl_frame *f, const void *body, size_t n, struct dl_err *e);

#endif
