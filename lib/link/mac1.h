/*
 * What message 1 of a handshake carries besides Noise, so that strangers who
 * do not know the syncer's public key cost it one hash and no curve operation.
 */
#ifndef DL_LINK_MAC1_H
#define DL_LINK_MAC1_H

#include <stddef.h>

#include "link/key.h"

enum { DL_MAC1 = 16 };

/*
 * BLAKE2b-128 of the prologue and the n bytes of message 1, keyed with the
 * BLAKE2b-256 of "dl-tools mac1" and the responder's public key.
 */
void dl_mac1_make(unsigned char out[DL_MAC1],
	const unsigned char responder[DL_KEY], const void *prologue,
	size_t prologue_n, const void *message, size_t n);

/* Is mac that? In constant time. */
int dl_mac1_check(const unsigned char mac[DL_MAC1],
	const unsigned char responder[DL_KEY], const void *prologue,
	size_t prologue_n, const void *message, size_t n);

#endif
