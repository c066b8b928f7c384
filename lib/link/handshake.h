/*
 * How a session begins: the preface, then Noise's two messages with a mac1 on
 * the first, in both roles, as bytes in and bytes out. Pure.
 *
 *	init; send its output; feed it what comes, sending its output, until
 *	done; split
 *
 *	preface line  ->		(preface.h)
 *		      <-  preface line, or "error ..." and the end
 *	message 1     ->  u16 length, 96 bytes of Noise, 16 of mac1
 *		      <-  message 2: u16 length, 48 bytes of Noise; or a length
 *			  of 0, "error ..." and the end
 *
 * A stranger costs a hash and no curve operation, and its bytes a few hundred
 * of memory. Message 1 can be an old one played again: what the acceptor has
 * learnt from it counts from the first sealed frame on.
 */
#ifndef DL_LINK_HANDSHAKE_H
#define DL_LINK_HANDSHAKE_H

#include <stddef.h>

#include "base/err.h"
#include "link/mac1.h"
#include "link/noise.h"
#include "link/preface.h"

struct dl_handshake_config {
	const struct dl_key *own;
	const unsigned char *peer; /* the acceptor's public key, DL_KEY bytes;
				    * NULL: we are the acceptor */
	const char *run;	   /* "" for any; an acceptor has one */
};

enum { DL_HANDSHAKE_FIRST = DL_NOISE_FIRST + DL_MAC1 };

struct dl_handshake { /* private */
	struct dl_handshake_config config;
	enum dl_handshake_state {
		DL_HANDSHAKE_PREFACE,
		DL_HANDSHAKE_MESSAGE,
		DL_HANDSHAKE_WORDS, /* the acceptor's, instead of message 2 */
		DL_HANDSHAKE_DONE,
		DL_HANDSHAKE_FAILED
	} state;
	struct dl_noise noise;
	unsigned char prologue[2 * DL_PREFACE_LINE];
	size_t prologue_n;
	unsigned char in[DL_PREFACE_LINE]; /* the line or message coming */
	size_t in_n;
	unsigned char out[2 + DL_PREFACE_LINE]; /* not sent yet */
	size_t out_n;
};

/* What c points to is borrowed until release. */
void dl_handshake_init(
	struct dl_handshake *h, const struct dl_handshake_config *c);
void dl_handshake_release(struct dl_handshake *h); /* wiped */

/*
 * Takes *used of n bytes that came: all while it lasts, once it is done none.
 * When it fails it is over, and what it has put out are its last words: 76 for
 * what is no handshake with this key, suite and run; or with the code in the
 * other's own words, which nobody has proven (65, 75, 76, 77).
 */
int dl_handshake_feed(struct dl_handshake *h, const void *p, size_t n,
	size_t *used, struct dl_err *e);
int dl_handshake_done(const struct dl_handshake *h);

/* What is to be sent: h->out_n bytes at h->out, of which n have been. */
void dl_handshake_sent(struct dl_handshake *h, size_t n);

/* The session's directions, and the other's public key, once it is done. */
void dl_handshake_split(struct dl_handshake *h, struct dl_cipher *send,
	struct dl_cipher *receive, unsigned char peer[DL_KEY]);

#endif
