/*
 * BLAKE2b-256: the hash of what one party trusts about another's bytes, and
 * the name of layouts and versions.
 */
#ifndef DL_BASE_HASH_H
#define DL_BASE_HASH_H

#include <stddef.h>
#include <sodium.h>

enum { DL_HASH_BYTES = 32, DL_HASH_HEX = 2 * DL_HASH_BYTES + 1 };

struct dl_hash {
	crypto_generichash_state state;
};

void dl_hash_init(struct dl_hash *h);
void dl_hash_add(struct dl_hash *h, const void *p, size_t n);
/* 64 lower-case hexadecimal digits and a NUL. */
void dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX]);

#endif
