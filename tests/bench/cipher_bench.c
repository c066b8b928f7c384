/*
 * How fast frames are sealed and opened, beside libsodium's bare primitive in
 * the same run: GB of payload a second of CPU, medians of turns taken one after
 * another. And what a handshake costs, whole and refused at its mac1. Not a
 * test; `make bench` runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "link/frame.h"
#include "link/mac1.h"
#include "link/noise.h"

enum { TRIES = 15, BYTES = 16 << 20, MOST = DL_FRAME_PAYLOAD + 1 };

struct bench {
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

static void frame_seal(struct bench *b)
{
	dl_cipher_seal(&b->seal, b->sealed, b->plain, b->n, NULL, 0, NULL);
}

/* The counter of open stands still, so that one frame serves. */
static void frame_open(struct bench *b)
{
	b->open.next = 0;
	if (dl_cipher_open(&b->open, b->plain, b->sealed, b->n + DL_CIPHER_TAG,
		    NULL, 0, NULL))
		abort();
}

static void bare_seal(struct bench *b)
{
	if (b->suite == DL_SUITE_AESGCM)
		crypto_aead_aes256gcm_encrypt_afternm(b->sealed, NULL, b->plain,
			b->n, NULL, 0, NULL, nonce, &b->aes);
	else
		crypto_aead_chacha20poly1305_ietf_encrypt(b->sealed, NULL,
			b->plain, b->n, NULL, 0, NULL, nonce, key);
}

static void bare_open(struct bench *b)
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

static double gigabytes(struct bench *b, void (*f)(struct bench *))
{
	int64_t start = now();
	size_t done = 0;

	for (; done < BYTES; done += b->n)
		f(b);
	return (double)done / (double)(now() - start);
}

static int rising(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v)
{
	qsort(v, TRIES, sizeof *v, rising);
	return v[TRIES / 2];
}

static void compare(struct bench *b, const char *what,
	void (*frame)(struct bench *), void (*bare)(struct bench *))
{
	double framed[TRIES], bared[TRIES], ratio[TRIES];

	for (int i = 0; i < TRIES; i++) {
		bare_seal(b); /* what both open */
		bared[i] = gigabytes(b, bare);
		framed[i] = gigabytes(b, frame);
		ratio[i] = framed[i] / bared[i];
	}
	printf("%-10s %5zu bytes  %s %5.2f GB/s  %4.2f of libsodium's %5.2f\n",
		dl_suite_name(b->suite), b->n, what, median(framed),
		median(ratio), median(bared));
}

static void bench_frames(struct bench *b)
{
	static const size_t sizes[] = {MOST, 4096, 256};

	dl_cipher_init(&b->seal, b->suite, key);
	dl_cipher_init(&b->open, b->suite, key);
	b->open.rekey_every = 0; /* never */
	if (b->suite == DL_SUITE_AESGCM)
		crypto_aead_aes256gcm_beforenm(&b->aes, key);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		b->n = sizes[i];
		compare(b, "seal", frame_seal, bare_seal);
		compare(b, "open", frame_open, bare_open);
	}
}

static void bench_handshakes(enum dl_suite suite)
{
	enum { ROUNDS = 500 };
	unsigned char first[DL_NOISE_FIRST], second[DL_NOISE_SECOND],
		mac[DL_MAC1] = {0};
	struct dl_noise init, resp;
	struct dl_key a, b;
	int64_t start, both, refused;
	int taken = 0;

	dl_key_make(&a);
	dl_key_make(&b);
	start = now();
	for (int i = 0; i < ROUNDS; i++) {
		dl_noise_init(&init, suite, &a, b.public, "", 0);
		dl_noise_init(&resp, suite, &b, NULL, "", 0);
		if (dl_noise_write1(&init, first, NULL, 0, NULL) ||
			dl_noise_read1(
				&resp, NULL, first, sizeof first, NULL) ||
			dl_noise_write2(&resp, second, NULL, 0, NULL) ||
			dl_noise_read2(
				&init, NULL, second, sizeof second, NULL))
			abort();
	}
	both = now() - start;
	start = now();
	for (int i = 0; i < ROUNDS; i++)
		taken += dl_mac1_check(
			mac, b.public, "", 0, first, sizeof first);
	refused = now() - start;
	printf("%-10s a handshake, both ends %.0f us; refused at its mac1 "
	       "%.1f us\n",
		dl_suite_name(suite), (double)both / ROUNDS / 1e3,
		(double)refused / ROUNDS / 1e3);
	if (taken)
		abort();
}

int main(void)
{
	static struct bench b;

	if (sodium_init() < 0)
		return 99;
	for (int i = 0; i < DL_SUITES; i++) {
		b.suite = (enum dl_suite)i;
		if (!dl_suite_available(b.suite))
			continue;
		bench_frames(&b);
		bench_handshakes(b.suite);
	}
	return 0;
}
