/*
 * One direction of a session: frames sealed and opened one after another
 * (Noise's CipherState). Pure: no I/O, no memory of its own.
 *
 * The nonce is a counter from 0 that never comes again: it only rises, also
 * across keys, and ends before the value that Noise keeps for REKEY. After
 * every rekey_every frames both ends replace the key by Noise's REKEY, so that
 * a key seals at most 64 GiB and says nothing of the frames before it.
 */
#ifndef DL_LINK_CIPHER_H
#define DL_LINK_CIPHER_H

#include <stddef.h>
#include <stdint.h>
#include <sodium.h>

#include "base/err.h"

/* Best first. */
enum dl_suite { DL_SUITE_AESGCM, DL_SUITE_CHACHAPOLY, DL_SUITES };

enum {
	DL_CIPHER_KEY = 32,
	DL_CIPHER_TAG = 16, /* bytes that sealing adds */
	DL_CIPHER_REKEY = 1 << 20,
};

/* "AESGCM", "ChaChaPoly", as Noise names them. */
const char *dl_suite_name(enum dl_suite suite);
/* Does this machine have it? AESGCM only with AES instructions; sodium_init
 * was called before. */
int dl_suite_available(enum dl_suite suite);

struct dl_cipher {
	uint64_t rekey_every; /* frames under one key: DL_CIPHER_REKEY;
			       * 0: any number */
	/* private */
	uint64_t next;	    /* nonce of the next frame */
	uint64_t under_key; /* frames since the key was new */
	enum dl_suite suite;
	unsigned char key[DL_CIPHER_KEY];
	crypto_aead_aes256gcm_state aes; /* the key's schedule, for AESGCM */
};

/* Copies the key; suite is an available one. */
void dl_cipher_init(struct dl_cipher *c, enum dl_suite suite,
	const unsigned char key[DL_CIPHER_KEY]);
void dl_cipher_release(struct dl_cipher *c); /* wiped; again is fine */

/*
 * Seals the n bytes at in, bound to ad_n bytes of ad, into the n +
 * DL_CIPHER_TAG at out, which is in itself or does not overlap it. 70 when the
 * counter has come to its end, with out untouched. Frames have no ad.
 */
int dl_cipher_seal(struct dl_cipher *c, unsigned char *out,
	const unsigned char *in, size_t n, const unsigned char *ad, size_t ad_n,
	struct dl_err *e);

/*
 * Opens the n sealed bytes at in into the n - DL_CIPHER_TAG at out, as above.
 * 76 when they are not the next that the other end sealed, just so: out then
 * holds nothing of them, and the session is over.
 */
int dl_cipher_open(struct dl_cipher *c, unsigned char *out,
	const unsigned char *in, size_t n, const unsigned char *ad, size_t ad_n,
	struct dl_err *e);

#endif
