/*
 * Keys of learners and syncers: X25519 pairs, written in base64 as 44
 * characters on one line.
 */
#ifndef DL_LINK_KEY_H
#define DL_LINK_KEY_H

#include "base/err.h"

enum {
	DL_KEY = 32,	  /* bytes */
	DL_KEY_TEXT = 45, /* base64 and a NUL */
};

struct dl_key {
	unsigned char secret[DL_KEY], public[DL_KEY];
};

/* A new pair into the caller's storage. */
void dl_key_make(struct dl_key *k);

#endif
