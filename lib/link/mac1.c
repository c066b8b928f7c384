#include "link/mac1.h"

#include <sodium.h>

void dl_mac1_make(unsigned char out[DL_MAC1],
	const unsigned char responder[DL_KEY], const void *prologue,
	size_t prologue_n, const void *message, size_t n)
{
	static const char label[] = "dl-tools mac1";
	unsigned char key[32];
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, sizeof key);
	crypto_generichash_update(
		&state, (const unsigned char *)label, sizeof label - 1);
	crypto_generichash_update(&state, responder, DL_KEY);
	crypto_generichash_final(&state, key, sizeof key);
	crypto_generichash_init(&state, key, sizeof key, DL_MAC1);
	crypto_generichash_update(&state, prologue, prologue_n);
	crypto_generichash_update(&state, message, n);
	crypto_generichash_final(&state, out, DL_MAC1);
}

int dl_mac1_check(const unsigned char mac[DL_MAC1],
	const unsigned char responder[DL_KEY], const void *prologue,
	size_t prologue_n, const void *message, size_t n)
{
	unsigned char good[DL_MAC1];

	dl_mac1_make(good, responder, prologue, prologue_n, message, n);
	return sodium_memcmp(good, mac, sizeof good) == 0;
}
