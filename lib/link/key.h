/*
 * Keys of learners and syncers: X25519 pairs. In text a key is 32 bytes in
 * base64: 44 characters. A key file holds the secret one on one line, which may
 * end in a newline, and nothing else.
 */
#ifndef DL_LINK_KEY_H
#define DL_LINK_KEY_H

#include <stddef.h>

#include "base/err.h"

enum {
	DL_KEY = 32,	  /* bytes */
	DL_KEY_TEXT = 44, /* characters, without a NUL */
};

struct dl_key {
	unsigned char secret[DL_KEY], public[DL_KEY];
};

/* A new pair into the caller's storage. */
void dl_key_make(struct dl_key *k);

/*
 * Pairs that stay: in memory that is locked, left out of core dumps, and wiped
 * by dl_key_free. 71 when the system has none left.
 */
int dl_key_new(struct dl_key **k, struct dl_err *e); /* a new pair */
/*
 * From a key file; "-" is standard input, "/dev/fd/N" the descriptor N, which
 * is closed. 77 for a regular file that is not ours (or root's), or that group
 * or others may do anything with, but for reading one of root's by its group
 * root; 66 when there is none, or it is a terminal,
 * which would show the key; 65 when it holds something else.
 */
int dl_key_read(struct dl_key **k, const char *path, struct dl_err *e);
void dl_key_free(struct dl_key *k); /* NULL is fine */

/* As text, in a time that does not depend on the key; returns out. */
char *dl_key_print(char out[DL_KEY_TEXT + 1], const unsigned char key[DL_KEY]);
/* The n characters at s, in the one spelling that dl_key_print has; 65. They
 * may be secret, and are not in the message. */
int dl_key_parse(
	unsigned char key[DL_KEY], const char *s, size_t n, struct dl_err *e);

#endif
