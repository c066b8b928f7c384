#include "link/cipher.h"

#include <string.h>

#include "base/mem.h"

enum { NONCE = 12 };

const char *dl_suite_name(enum dl_suite suite)
{
	return suite == DL_SUITE_AESGCM ? "AESGCM" : "ChaChaPoly";
}

int dl_suite_available(enum dl_suite suite)
{
	return suite == DL_SUITE_CHACHAPOLY ||
	       crypto_aead_aes256gcm_is_available();
}

static void set_schedule(struct dl_cipher *c)
{
	if (c->suite == DL_SUITE_AESGCM)
		crypto_aead_aes256gcm_beforenm(&c->aes, c->key);
}

void dl_cipher_init(struct dl_cipher *c, enum dl_suite suite,
	const unsigned char key[DL_CIPHER_KEY])
{
	c->rekey_every = DL_CIPHER_REKEY;
	c->next = 0;
	c->under_key = 0;
	c->suite = suite;
	memcpy(c->key, key, sizeof c->key);
	set_schedule(c);
}

void dl_cipher_release(struct dl_cipher *c)
{
	sodium_memzero(c, sizeof *c);
}

/* Noise's encoding: 32 bits of zeros, then the counter, whose byte order each
 * cipher has its own idea of. */
static void put_nonce(
	unsigned char out[NONCE], enum dl_suite suite, uint64_t counter)
{
	memset(out, 0, NONCE);
	dl_put_le64(out + 4, counter);
	if (suite == DL_SUITE_AESGCM)
		for (int i = 0; i < 8; i++)
			out[4 + i] = (unsigned char)(counter >> (56 - 8 * i));
}

static void seal(const struct dl_cipher *c, uint64_t counter,
	unsigned char *out, const unsigned char *in, size_t n,
	const unsigned char *ad, size_t ad_n)
{
	unsigned char nonce[NONCE];

	put_nonce(nonce, c->suite, counter);
	if (c->suite == DL_SUITE_AESGCM)
		crypto_aead_aes256gcm_encrypt_afternm(
			out, NULL, in, n, ad, ad_n, NULL, nonce, &c->aes);
	else
		crypto_aead_chacha20poly1305_ietf_encrypt(
			out, NULL, in, n, ad, ad_n, NULL, nonce, c->key);
}

static int open(const struct dl_cipher *c, uint64_t counter, unsigned char *out,
	const unsigned char *in, size_t n, const unsigned char *ad, size_t ad_n)
{
	unsigned char nonce[NONCE];

	put_nonce(nonce, c->suite, counter);
	if (c->suite == DL_SUITE_AESGCM)
		return crypto_aead_aes256gcm_decrypt_afternm(
			out, NULL, NULL, in, n, ad, ad_n, nonce, &c->aes);
	return crypto_aead_chacha20poly1305_ietf_decrypt(
		out, NULL, NULL, in, n, ad, ad_n, nonce, c->key);
}

/* Noise's REKEY: the key becomes what it makes of zeros under the last nonce,
 * without the tag. */
static void rekey(struct dl_cipher *c)
{
	unsigned char sealed[DL_CIPHER_KEY + DL_CIPHER_TAG] = {0};

	seal(c, UINT64_MAX, sealed, sealed, DL_CIPHER_KEY, NULL, 0);
	memcpy(c->key, sealed, sizeof c->key);
	sodium_memzero(sealed, sizeof sealed);
	set_schedule(c);
	c->under_key = 0;
}

static void count(struct dl_cipher *c)
{
	c->next++;
	c->under_key++;
	if (c->under_key == c->rekey_every)
		rekey(c);
}

int dl_cipher_seal(struct dl_cipher *c, unsigned char *out,
	const unsigned char *in, size_t n, const unsigned char *ad, size_t ad_n,
	struct dl_err *e)
{
	if (c->next == UINT64_MAX)
		return dl_fail(e, DL_SOFTWARE, "session: no nonce left");
	seal(c, c->next, out, in, n, ad, ad_n);
	count(c);
	return 0;
}

int dl_cipher_open(struct dl_cipher *c, unsigned char *out,
	const unsigned char *in, size_t n, const unsigned char *ad, size_t ad_n,
	struct dl_err *e)
{
	if (c->next == UINT64_MAX || n < DL_CIPHER_TAG ||
		open(c, c->next, out, in, n, ad, ad_n))
		return dl_fail(e, DL_PROTOCOL,
			"session: a frame that was not sealed here and now");
	count(c);
	return 0;
}
