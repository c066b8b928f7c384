/*
 * The handshake of a session: Noise_IK_25519_{AESGCM,ChaChaPoly}_BLAKE2b, both
 * roles, as the Noise specification (revision 34) has it. Pure: no I/O, no
 * memory of its own; only randomness is taken from libsodium.
 *
 * The initiator knows the responder's public key beforehand; the responder
 * learns the initiator's from message 1, which may be an old one played again:
 * nothing may be done on its word until a frame of the session has opened.
 *
 *	initiator: init, write1, read2, split
 *	responder: init, read1, write2, split
 *
 * What failed is over: release it.
 */
#ifndef DL_LINK_NOISE_H
#define DL_LINK_NOISE_H

#include <stddef.h>

#include "base/err.h"
#include "link/cipher.h"
#include "link/key.h"

enum {
	DL_NOISE_HASH = 64,
	DL_NOISE_FIRST = 96,  /* message 1 without a payload: e, s, two tags */
	DL_NOISE_SECOND = 48, /* message 2 without a payload: e, a tag */
};

struct dl_noise {
	unsigned char peer[DL_KEY]; /* the other's public key: the responder's
				     * to read once read1 was fine */
	unsigned char hash[DL_NOISE_HASH]; /* of all that was said; the session
					    * is bound to it */
	/* private */
	enum dl_suite suite;
	int initiator;
	const struct dl_key *own;
	struct dl_key ephemeral;
	unsigned char peer_ephemeral[DL_KEY];
	unsigned char chain[DL_NOISE_HASH];
	struct dl_cipher cipher;
};

/*
 * own is borrowed until release or split. peer is the responder's public key,
 * NULL when we are the responder. The prologue (the prologue_n bytes that both
 * ends have seen before) must be the same for both.
 */
void dl_noise_init(struct dl_noise *n, enum dl_suite suite,
	const struct dl_key *own, const unsigned char *peer,
	const void *prologue, size_t prologue_n);
void dl_noise_release(struct dl_noise *n); /* wiped; again is fine */

/*
 * Each message carries a payload of n bytes (none: NULL, 0), the responder's
 * answer the first that only the key's owner can read. out has room for
 * DL_NOISE_FIRST + n or DL_NOISE_SECOND + n bytes. 65 when peer is no public
 * key that keeps secrets (its order is low).
 */
int dl_noise_write1(struct dl_noise *n, unsigned char *out, const void *payload,
	size_t payload_n, struct dl_err *e);
int dl_noise_write2(struct dl_noise *n, unsigned char *out, const void *payload,
	size_t payload_n, struct dl_err *e);

/*
 * The same from the other side: message has message_n bytes and gives the
 * payload's message_n - DL_NOISE_FIRST or - DL_NOISE_SECOND, which may be
 * NULL when that is 0. 76 when the message was not made for this key, suite
 * and prologue, or not a bit of it was changed on the way.
 */
int dl_noise_read1(struct dl_noise *n, void *payload,
	const unsigned char *message, size_t message_n, struct dl_err *e);
int dl_noise_read2(struct dl_noise *n, void *payload,
	const unsigned char *message, size_t message_n, struct dl_err *e);

/* The session's two directions; n is wiped but for peer and hash. */
void dl_noise_split(
	struct dl_noise *n, struct dl_cipher *send, struct dl_cipher *receive);

#endif
