/*
 * How fast frames are sealed and opened, beside libsodium's bare primitive, in
 * seconds of CPU; and how often handshakes are made by both ends, beside how
 * often they are refused at their mac1.
 */
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "link/frame.h"
#include "link/mac1.h"
#include "link/noise.h"

enum {
	TURNS = 15,
	BYTES = 16 << 20,
	MOST = DL_FRAME_PAYLOAD + 1,
	HANDSHAKES = 100
};

struct cipher {
	enum dl_suite suite;
	size_t n; /* of a frame, with its channel */
	struct dl_cipher seal, open;
	crypto_aead_aes256gcm_state aes;
	unsigned char plain[MOST], sealed[MOST + DL_CIPHER_TAG];
};

static const unsigned char key[DL_CIPHER_KEY] = {1}, nonce[12];

/* Nanoseconds of CPU. */
static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void frame_seal(struct cipher *b)
{
	dl_cipher_seal(&b->seal, b->sealed, b->plain, b->n, NULL, 0, NULL);
}

/* The counter of open stands still, so that one frame serves. */
static void frame_open(struct cipher *b)
{
	b->open.next = 0;
	if (dl_cipher_open(&b->open, b->plain, b->sealed, b->n + DL_CIPHER_TAG,
		    NULL, 0, NULL))
		abort();
}

static void bare_seal(struct cipher *b)
{
	if (b->suite == DL_SUITE_AESGCM)
		crypto_aead_aes256gcm_encrypt_afternm(b->sealed, NULL, b->plain,
			b->n, NULL, 0, NULL, nonce, &b->aes);
	else
		crypto_aead_chacha20poly1305_ietf_encrypt(b->sealed, NULL,
			b->plain, b->n, NULL, 0, NULL, nonce, key);
}

static void bare_open(struct cipher *b)
{
	size_t n = b->n + DL_CIPHER_TAG;

	if (b->suite == DL_SUITE_AESGCM
			? crypto_aead_aes256gcm_decrypt_afternm(b->plain, NULL,
				  NULL, b->sealed, n, NULL, 0, nonce, &b->aes)
			: crypto_aead_chacha20poly1305_ietf_decrypt(b->plain,
				  NULL, NULL, b->sealed, n, NULL, 0, nonce,
				  key))
		abort();
}

/* A turn: so many bytes by that function. */
static void turn(struct cipher *b, void (*f)(struct cipher *))
{
	int64_t from = now();

	for (size_t done = 0; done < BYTES; done += b->n)
		f(b);
	bench_took((double)(now() - from) * 1e-9);
}

static void seal_frames(void *ctx)
{
	turn(ctx, frame_seal);
}

static void seal_bare(void *ctx)
{
	turn(ctx, bare_seal);
}

static void open_frames(void *ctx)
{
	bare_seal(ctx); /* what is opened */
	turn(ctx, frame_open);
}

static void open_bare(void *ctx)
{
	bare_seal(ctx);
	turn(ctx, bare_open);
}

static void bench_frames(struct cipher *b)
{
	static const size_t sizes[] = {MOST, 4096, 256};
	const char *suite = dl_suite_name(b->suite);

	dl_cipher_init(&b->seal, b->suite, key);
	dl_cipher_init(&b->open, b->suite, key);
	b->open.rekey_every = 0; /* never */
	if (b->suite == DL_SUITE_AESGCM)
		crypto_aead_aes256gcm_beforenm(&b->aes, key);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t frames = (BYTES + sizes[i] - 1) / sizes[i];
		const struct bench bench = {.unit = "GB/s",
			.amount = (double)(frames * sizes[i]) * 1e-9,
			.turns = TURNS};

		b->n = sizes[i];
		bench_compare(&bench, seal_frames, seal_bare, b,
			"seal %s, %zu bytes", suite, b->n);
		bench_compare(&bench, open_frames, open_bare, b,
			"open %s, %zu bytes", suite, b->n);
	}
}

struct meeting {
	enum dl_suite suite;
	struct dl_key a, b;
	unsigned char first[DL_NOISE_FIRST];
};

static void meet(void *ctx)
{
	struct meeting *m = ctx;
	unsigned char second[DL_NOISE_SECOND];
	int64_t from = now();
	struct dl_noise init, resp;

	for (int i = 0; i < HANDSHAKES; i++) {
		dl_noise_init(&init, m->suite, &m->a, m->b.public, "", 0);
		dl_noise_init(&resp, m->suite, &m->b, NULL, "", 0);
		bench_need(!dl_noise_write1(&init, m->first, NULL, 0, NULL) &&
				   !dl_noise_read1(&resp, NULL, m->first,
					   sizeof m->first, NULL) &&
				   !dl_noise_write2(
					   &resp, second, NULL, 0, NULL) &&
				   !dl_noise_read2(&init, NULL, second,
					   sizeof second, NULL),
			"handshake");
	}
	bench_took((double)(now() - from) * 1e-9);
}

static void refuse(void *ctx)
{
	struct meeting *m = ctx;
	unsigned char mac[DL_MAC1] = {0};
	int64_t from = now();

	for (int i = 0; i < HANDSHAKES; i++)
		bench_need(!dl_mac1_check(mac, m->b.public, "", 0, m->first,
				   sizeof m->first),
			"a handshake of no mac was not refused");
	bench_took((double)(now() - from) * 1e-9);
}

static void bench_handshakes(enum dl_suite suite)
{
	const struct bench bench = {
		.unit = "1/s", .amount = HANDSHAKES, .turns = TURNS};
	struct meeting m = {.suite = suite};

	dl_key_make(&m.a);
	dl_key_make(&m.b);
	bench_compare(&bench, meet, refuse, &m, "handshake %s, beside refused",
		dl_suite_name(suite));
}

int main(void)
{
	static struct cipher b;

	bench_need(sodium_init() >= 0, "libsodium");
	for (int i = 0; i < DL_SUITES; i++) {
		b.suite = (enum dl_suite)i;
		if (!dl_suite_available(b.suite))
			continue;
		bench_frames(&b);
		bench_handshakes(b.suite);
	}
	return 0;
}
