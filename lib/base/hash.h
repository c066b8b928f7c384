/*
 * BLAKE2b-256: the hash of what one party trusts about another's bytes, and
 * the name of layouts and versions.
 */
#ifndef DL_BASE_HASH_H
#define DL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { DL_HASH_BYTES = 32, DL_HASH_HEX = 2 * DL_HASH_BYTES + 1 };
enum { DL_HASH_BLOCK = 128 };

struct dl_hash {
	uint64_t state[8];
	uint64_t bytes; /* in state */
	size_t n;	/* bytes that wait in block */
	unsigned char block[DL_HASH_BLOCK];
};

void dl_hash_init(struct dl_hash *h);
void dl_hash_add(struct dl_hash *h, const void *data, size_t n);
/* 64 lower-case hexadecimal digits and a NUL. */
void dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX]);

#endif
