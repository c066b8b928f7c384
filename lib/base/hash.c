#include "base/hash.h"

void dl_hash_init(struct dl_hash *h)
{
	crypto_generichash_init(&h->state, NULL, 0, DL_HASH_BYTES);
}

void dl_hash_add(struct dl_hash *h, const void *p, size_t n)
{
	crypto_generichash_update(&h->state, p, n);
}

void dl_hash_hex(struct dl_hash *h, char out[DL_HASH_HEX])
{
	unsigned char sum[DL_HASH_BYTES];

	crypto_generichash_final(&h->state, sum, sizeof sum);
	sodium_bin2hex(out, DL_HASH_HEX, sum, sizeof sum);
}
