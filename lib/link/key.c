#include "link/key.h"

#include <sodium.h>

void dl_key_make(struct dl_key *k)
{
	randombytes_buf(k->secret, sizeof k->secret);
	crypto_scalarmult_base(k->public, k->secret);
}
