/* Frames under a session's keys: what opens, what does not, and new keys as
 * the bare primitives make them. */
#include <string.h>

#include "base/mem.h"
#include "link/cipher.h"
#include "tests/tap.h"

enum { PLAIN = 22, SEALED = PLAIN + DL_CIPHER_TAG, FRAMES = 11 };

static const unsigned char first_key[DL_CIPHER_KEY] = "a key of 32 bytes, to "
						      "the last";

/* The suite in one call each: no state, no schedule made beforehand. */
static void bare_seal(enum dl_suite suite, const unsigned char *key,
	uint64_t counter, unsigned char *out, const unsigned char *in, size_t n)
{
	unsigned char nonce[12] = {0};

	dl_put_le64(nonce + 4, counter);
	if (suite == DL_SUITE_CHACHAPOLY) {
		crypto_aead_chacha20poly1305_ietf_encrypt(
			out, NULL, in, n, NULL, 0, NULL, nonce, key);
		return;
	}
	for (int i = 0; i < 4; i++) {
		unsigned char swap = nonce[4 + i];

		nonce[4 + i] = nonce[11 - i];
		nonce[11 - i] = swap;
	}
	crypto_aead_aes256gcm_encrypt(
		out, NULL, in, n, NULL, 0, NULL, nonce, key);
}

static void begin(struct dl_cipher *a, struct dl_cipher *b, enum dl_suite suite)
{
	dl_cipher_init(a, suite, first_key);
	dl_cipher_init(b, suite, first_key);
}

static int seal(struct dl_cipher *c, unsigned char *out, const void *in)
{
	return dl_cipher_seal(c, out, in, PLAIN, NULL, 0, NULL);
}

static int opens(const struct dl_cipher *c, const unsigned char *in, size_t n)
{
	unsigned char out[SEALED + 1];
	struct dl_cipher copy = *c;

	return !dl_cipher_open(&copy, out, in, n, NULL, 0, NULL);
}

static void test_changed(enum dl_suite suite)
{
	unsigned char in[PLAIN] = "twenty-two bytes here", frame[SEALED + 1];
	struct dl_cipher a, b;
	size_t taken = 0;

	begin(&a, &b, suite);
	seal(&a, frame, in);
	for (size_t bit = 0; bit < 8 * SEALED; bit++) {
		frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
		taken += (size_t)opens(&b, frame, SEALED);
		frame[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	ok(taken == 0, "every flipped bit is refused");
	frame[SEALED] = 0;
	for (size_t n = 0; n <= SEALED + 1; n++)
		taken += n != SEALED && opens(&b, frame, n);
	ok(taken == 0, "a frame cut or longer is refused");
	ok(opens(&b, frame, SEALED), "as it was it opens");
}

static void test_order(enum dl_suite suite)
{
	unsigned char in[PLAIN] = {0}, frame[3][SEALED], out[PLAIN];
	struct dl_cipher a, b;
	struct dl_err e = {0};

	begin(&a, &b, suite);
	for (int i = 0; i < 3; i++)
		seal(&a, frame[i], in);
	ok(!opens(&b, frame[1], SEALED) && !opens(&b, frame[2], SEALED),
		"a later frame is refused");
	ok(!dl_cipher_open(&b, out, frame[0], SEALED, NULL, 0, NULL),
		"the first opens");
	ok(dl_cipher_open(&b, out, frame[0], SEALED, NULL, 0, &e) ==
			DL_PROTOCOL,
		"again it is refused: %s", e.text);
	ok(!opens(&b, frame[2], SEALED), "one left out is noticed");
	ok(opens(&b, frame[1], SEALED), "the second opens");
	dl_cipher_init(&b, suite, frame[0]);
	ok(!opens(&b, frame[0], SEALED), "under another key nothing does");
}

static void test_in_place(enum dl_suite suite)
{
	unsigned char in[PLAIN] = "twenty-two bytes here", apart[SEALED],
		      buf[SEALED];
	struct dl_cipher a, b;

	begin(&a, &b, suite);
	seal(&a, apart, in);
	memcpy(buf, in, PLAIN);
	seal(&b, buf, buf);
	ok(!memcmp(apart, buf, SEALED), "sealed in place");
	begin(&a, &b, suite);
	ok(!dl_cipher_open(&b, buf, buf, SEALED, NULL, 0, NULL) &&
			!memcmp(buf, in, PLAIN),
		"opened in place");
	memcpy(buf, apart, SEALED);
	buf[0] ^= 1;
	ok(dl_cipher_open(&a, buf, buf, SEALED, NULL, 0, NULL) &&
			memcmp(buf + 1, in + 1, PLAIN - 1),
		"what does not open is not shown");
}

static void test_rekey(enum dl_suite suite)
{
	unsigned char key[DL_CIPHER_KEY], next[SEALED + DL_CIPHER_KEY],
		zero[DL_CIPHER_KEY] = {0}, in[PLAIN], got[SEALED], want[SEALED],
		back[PLAIN];
	struct dl_cipher a, b;
	size_t wrong = 0, changed = 0;

	begin(&a, &b, suite);
	ok(a.rekey_every == UINT64_C(1) << 20, "2^20 frames a key");
	a.rekey_every = b.rekey_every = 3;
	memcpy(key, first_key, sizeof key);
	for (uint64_t i = 0; i < FRAMES; i++) {
		memset(in, (int)i, sizeof in);
		if (i && i % 3 == 0) {
			bare_seal(suite, key, UINT64_MAX, next, zero,
				sizeof zero);
			changed += memcmp(key, next, sizeof key) != 0;
			memcpy(key, next, sizeof key);
		}
		bare_seal(suite, key, i, want, in, PLAIN);
		wrong += seal(&a, got, in) || memcmp(got, want, SEALED);
		wrong +=
			dl_cipher_open(&b, back, want, SEALED, NULL, 0, NULL) ||
			memcmp(back, in, PLAIN);
	}
	ok(wrong == 0 && changed == 3, "%d frames under %zu new keys", FRAMES,
		changed);
}

/* The last nonce is REKEY's; the counter stops before it for good. */
static void test_end(enum dl_suite suite)
{
	unsigned char in[PLAIN] = {0}, frame[SEALED], again[SEALED];
	struct dl_cipher a, b;
	struct dl_err e = {0};

	begin(&a, &b, suite);
	a.next = b.next = UINT64_MAX - 1;
	ok(!seal(&a, frame, in) &&
			!dl_cipher_open(&b, in, frame, SEALED, NULL, 0, NULL),
		"the last frame goes");
	memset(again, 7, sizeof again);
	ok(dl_cipher_seal(&a, again, in, PLAIN, NULL, 0, &e) == DL_SOFTWARE &&
			again[0] == 7 && again[SEALED - 1] == 7,
		"none after it: %s", e.text);
	bare_seal(suite, first_key, UINT64_MAX, frame, in, PLAIN);
	ok(dl_cipher_open(&b, in, frame, SEALED, NULL, 0, NULL) == DL_PROTOCOL,
		"nor is one taken");
}

static void test_wiped(enum dl_suite suite)
{
	struct dl_cipher a, b;

	begin(&a, &b, suite);
	dl_cipher_release(&a);
	ok(sodium_is_zero((unsigned char *)&a, sizeof a) &&
			!sodium_is_zero((unsigned char *)&b, sizeof b),
		"release wipes");
}

int main(void)
{
	if (sodium_init() < 0)
		return 99;
	for (int i = 0; i < DL_SUITES; i++) {
		enum dl_suite suite = (enum dl_suite)i;

		if (!dl_suite_available(suite)) {
			skip("%s: not on this machine", dl_suite_name(suite));
			continue;
		}
		ok(1, "%s", dl_suite_name(suite));
		test_changed(suite);
		test_order(suite);
		test_in_place(suite);
		test_rekey(suite);
		test_end(suite);
		test_wiped(suite);
	}
	return done_testing();
}
