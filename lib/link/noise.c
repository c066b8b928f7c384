#include "link/noise.h"

#include <string.h>

enum { BLOCK = 128 }; /* BLAKE2b's, in bytes */

static void hash2(unsigned char out[DL_NOISE_HASH], const void *a, size_t a_n,
	const void *b, size_t b_n)
{
	crypto_generichash_state state;

	crypto_generichash_init(&state, NULL, 0, DL_NOISE_HASH);
	crypto_generichash_update(&state, a, a_n);
	crypto_generichash_update(&state, b, b_n);
	crypto_generichash_final(&state, out, DL_NOISE_HASH);
	sodium_memzero(&state, sizeof state);
}

/* HMAC (RFC 2104) of a and b, keyed with a hash. Noise wants this one, not
 * BLAKE2b's own keyed mode. */
static void hmac(unsigned char out[DL_NOISE_HASH],
	const unsigned char key[DL_NOISE_HASH], const void *a, size_t a_n,
	unsigned char last)
{
	unsigned char pad[BLOCK], inner[DL_NOISE_HASH];
	crypto_generichash_state state;

	memset(pad, 0x36, sizeof pad);
	for (size_t i = 0; i < DL_NOISE_HASH; i++)
		pad[i] ^= key[i];
	crypto_generichash_init(&state, NULL, 0, DL_NOISE_HASH);
	crypto_generichash_update(&state, pad, sizeof pad);
	crypto_generichash_update(&state, a, a_n);
	if (last)
		crypto_generichash_update(&state, &last, 1);
	crypto_generichash_final(&state, inner, sizeof inner);
	for (size_t i = 0; i < sizeof pad; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	hash2(out, pad, sizeof pad, inner, sizeof inner);
	sodium_memzero(pad, sizeof pad);
	sodium_memzero(inner, sizeof inner);
	sodium_memzero(&state, sizeof state);
}

/* Noise's HKDF with two outputs; first may be chain itself. */
static void hkdf(unsigned char first[DL_NOISE_HASH],
	unsigned char second[DL_NOISE_HASH],
	const unsigned char chain[DL_NOISE_HASH], const void *input, size_t n)
{
	unsigned char temp[DL_NOISE_HASH];

	hmac(temp, chain, input, n, 0);
	hmac(first, temp, NULL, 0, 1);
	hmac(second, temp, first, DL_NOISE_HASH, 2);
	sodium_memzero(temp, sizeof temp);
}

static void mix_hash(struct dl_noise *n, const void *p, size_t size)
{
	hash2(n->hash, n->hash, sizeof n->hash, p, size);
}

static void mix_key(struct dl_noise *n, const unsigned char shared[DL_KEY])
{
	unsigned char key[DL_NOISE_HASH];

	hkdf(n->chain, key, n->chain, shared, DL_KEY);
	dl_cipher_init(&n->cipher, n->suite, key);
	sodium_memzero(key, sizeof key);
}

/* A token such as "es": -1 when the public key is one of low order. */
static int mix_dh(struct dl_noise *n, const unsigned char secret[DL_KEY],
	const unsigned char public[DL_KEY])
{
	unsigned char shared[DL_KEY];
	int rc = crypto_scalarmult(shared, secret, public);

	if (!rc)
		mix_key(n, shared);
	sodium_memzero(shared, sizeof shared);
	return rc;
}

static int seal_and_hash(struct dl_noise *n, unsigned char *out, const void *in,
	size_t size, struct dl_err *e)
{
	int rc = dl_cipher_seal(
		&n->cipher, out, in, size, n->hash, sizeof n->hash, e);

	mix_hash(n, out, size + DL_CIPHER_TAG);
	return rc;
}

/* What n sealed bytes at in say, into out. */
static int open_and_hash(
	struct dl_noise *n, void *out, const unsigned char *in, size_t size)
{
	unsigned char before[DL_NOISE_HASH];

	memcpy(before, n->hash, sizeof before);
	mix_hash(n, in, size);
	return dl_cipher_open(
		&n->cipher, out, in, size, before, sizeof before, NULL);
}

void dl_noise_init(struct dl_noise *n, enum dl_suite suite,
	const struct dl_key *own, const unsigned char *peer,
	const void *prologue, size_t prologue_n)
{
	static const char *const name[DL_SUITES] = {
		[DL_SUITE_AESGCM] = "Noise_IK_25519_AESGCM_BLAKE2b",
		[DL_SUITE_CHACHAPOLY] = "Noise_IK_25519_ChaChaPoly_BLAKE2b",
	};

	memset(n, 0, sizeof *n);
	n->suite = suite;
	n->initiator = peer != NULL;
	n->own = own;
	if (peer)
		memcpy(n->peer, peer, DL_KEY);
	memcpy(n->hash, name[suite], strlen(name[suite]));
	memcpy(n->chain, n->hash, sizeof n->chain);
	mix_hash(n, prologue, prologue_n);
	mix_hash(n, peer ? peer : own->public, DL_KEY);
}

void dl_noise_release(struct dl_noise *n)
{
	sodium_memzero(n, sizeof *n);
}

static int low_order(struct dl_err *e, int code)
{
	return dl_fail(e, code, "handshake: a public key of low order");
}

static int altered(struct dl_err *e)
{
	return dl_fail(e, DL_PROTOCOL,
		"handshake: not made for this key, or changed on the way");
}

int dl_noise_write1(struct dl_noise *n, unsigned char *out, const void *payload,
	size_t payload_n, struct dl_err *e)
{
	int rc;

	dl_key_make(&n->ephemeral);
	memcpy(out, n->ephemeral.public, DL_KEY);
	mix_hash(n, out, DL_KEY);
	out += DL_KEY;
	if (mix_dh(n, n->ephemeral.secret, n->peer))
		return low_order(e, DL_DATA);
	rc = seal_and_hash(n, out, n->own->public, DL_KEY, e);
	out += DL_KEY + DL_CIPHER_TAG;
	if (!rc && mix_dh(n, n->own->secret, n->peer))
		return low_order(e, DL_DATA);
	return rc ? rc : seal_and_hash(n, out, payload, payload_n, e);
}

int dl_noise_read1(struct dl_noise *n, void *payload,
	const unsigned char *message, size_t message_n, struct dl_err *e)
{
	const unsigned char *sealed = message + DL_KEY;

	if (message_n < DL_NOISE_FIRST)
		return altered(e);
	memcpy(n->peer_ephemeral, message, DL_KEY);
	mix_hash(n, message, DL_KEY);
	if (mix_dh(n, n->own->secret, n->peer_ephemeral))
		return low_order(e, DL_PROTOCOL);
	if (open_and_hash(n, n->peer, sealed, DL_KEY + DL_CIPHER_TAG))
		return altered(e);
	sealed += DL_KEY + DL_CIPHER_TAG;
	if (mix_dh(n, n->own->secret, n->peer))
		return low_order(e, DL_PROTOCOL);
	if (open_and_hash(
		    n, payload, sealed, (size_t)(message + message_n - sealed)))
		return altered(e);
	return 0;
}

int dl_noise_write2(struct dl_noise *n, unsigned char *out, const void *payload,
	size_t payload_n, struct dl_err *e)
{
	dl_key_make(&n->ephemeral);
	memcpy(out, n->ephemeral.public, DL_KEY);
	mix_hash(n, out, DL_KEY);
	if (mix_dh(n, n->ephemeral.secret, n->peer_ephemeral) ||
		mix_dh(n, n->ephemeral.secret, n->peer))
		return low_order(e, DL_PROTOCOL);
	return seal_and_hash(n, out + DL_KEY, payload, payload_n, e);
}

int dl_noise_read2(struct dl_noise *n, void *payload,
	const unsigned char *message, size_t message_n, struct dl_err *e)
{
	if (message_n < DL_NOISE_SECOND)
		return altered(e);
	mix_hash(n, message, DL_KEY);
	if (mix_dh(n, n->ephemeral.secret, message) ||
		mix_dh(n, n->own->secret, message))
		return low_order(e, DL_PROTOCOL);
	if (open_and_hash(n, payload, message + DL_KEY, message_n - DL_KEY))
		return altered(e);
	return 0;
}

void dl_noise_split(
	struct dl_noise *n, struct dl_cipher *send, struct dl_cipher *receive)
{
	unsigned char first[DL_NOISE_HASH], second[DL_NOISE_HASH];

	hkdf(first, second, n->chain, NULL, 0);
	dl_cipher_init(send, n->suite, n->initiator ? first : second);
	dl_cipher_init(receive, n->suite, n->initiator ? second : first);
	sodium_memzero(first, sizeof first);
	sodium_memzero(second, sizeof second);
	dl_cipher_release(&n->cipher);
	sodium_memzero(&n->ephemeral, sizeof n->ephemeral);
	sodium_memzero(n->chain, sizeof n->chain);
	n->own = NULL;
}
