/*
 * Either end of a handshake, and any bytes from its peer: raw, or what the true
 * peer says with bytes changed on the way. It ends in the same way whole and in
 * pieces; whatever was changed, no session comes of it; if nothing was, both
 * ends have one.
 *
 * The input's first byte: who is tested (1: the initiator), whether the rest is
 * raw (2) or changes, three bytes each: where, and what is flipped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "keys.h"
#include "link/handshake.h"

enum { INITIATOR = 1, RAW = 2, SAID = 1024 };

struct end {
	struct dl_handshake h;
	int code;
	struct dl_err why;
};

/* What the peer says reaches the one that is tested by way of this. */
struct way {
	const uint8_t *change;
	size_t changes, said, piece;
	int changed;
};

static void begin(struct end *x, int initiator)
{
	struct dl_handshake_config c = {
		.own = initiator ? &fuzz_learner : &fuzz_syncer,
		.peer = initiator ? fuzz_syncer.public : NULL,
		.run = "demo"};

	memset(x, 0, sizeof(*x));
	dl_handshake_init(&x->h, &c);
}

static void feed(struct end *x, const uint8_t *p, size_t n)
{
	size_t used;

	if (x->code || !n || dl_handshake_done(&x->h))
		return;
	x->code = dl_handshake_feed(&x->h, p, n, &used, &x->why);
	if (used > n || x->h.out_n > sizeof(x->h.out))
		abort();
	if (!x->code && !dl_handshake_done(&x->h) && used != n)
		abort();
	if (x->code && (x->code != x->why.code || !x->why.text[0] ||
			       (x->code != DL_DATA && x->code != DL_TEMPFAIL &&
				       x->code != DL_PROTOCOL &&
				       x->code != DL_NOPERM)))
		abort();
}

static void feed_pieces(struct end *x, const uint8_t *p, size_t n, size_t piece)
{
	for (size_t at = 0; at < n; at += piece)
		feed(x, p + at, n - at < piece ? n - at : piece);
}

/* The changes that fall into the n bytes at p, which come next. */
static void change(struct way *w, uint8_t *p, size_t n)
{
	for (size_t i = 0; i < w->changes; i++) {
		const uint8_t *c = w->change + 3 * i;
		size_t at = dl_le16(c);

		if (at < w->said || at - w->said >= n)
			continue;
		p[at - w->said] ^= c[2];
	}
	w->said += n;
}

/* One end's output to the other; 0 when it had none. */
static size_t carry(struct end *from, struct end *to, struct way *w)
{
	uint8_t bytes[sizeof(from->h.out)];
	size_t n = from->h.out_n;

	memcpy(bytes, from->h.out, n);
	if (w) {
		change(w, bytes, n);
		w->changed |= memcmp(bytes, from->h.out, n) != 0;
	}
	dl_handshake_sent(&from->h, n);
	feed_pieces(to, bytes, n, w ? w->piece : SAID);
	return n;
}

static void check_session(struct end *a, struct end *b)
{
	struct dl_cipher send[2], receive[2];
	unsigned char peer[DL_KEY], text[4 + DL_CIPHER_TAG];

	dl_handshake_split(&a->h, &send[0], &receive[0], peer);
	dl_handshake_split(&b->h, &send[1], &receive[1], peer);
	for (int i = 0; i < 2; i++)
		if (dl_cipher_seal(&send[i], text, (unsigned char *)"word", 4,
			    NULL, 0, NULL) ||
			dl_cipher_open(&receive[!i], text, text, sizeof(text),
				NULL, 0, NULL) ||
			memcmp(text, "word", 4) != 0)
			abort();
}

/* How it ends for the tested one with the true peer. */
static int with_peer(int initiator, const uint8_t *data, size_t n, size_t piece)
{
	struct way w = {.change = data, .changes = n / 3, .piece = piece};
	struct end tested, peer;
	int code;

	fuzz_reset_random();
	begin(&tested, initiator);
	begin(&peer, !initiator);
	while (carry(&tested, &peer, NULL) + carry(&peer, &tested, &w))
		;
	if (w.changed && dl_handshake_done(&tested.h))
		abort();
	if (!w.changed) {
		if (!dl_handshake_done(&tested.h) ||
			!dl_handshake_done(&peer.h))
			abort();
		check_session(&tested, &peer);
	}
	code = tested.code;
	dl_handshake_release(&tested.h);
	dl_handshake_release(&peer.h);
	return code;
}

static int with_bytes(
	int initiator, const uint8_t *data, size_t n, size_t piece)
{
	struct end tested;
	int code;

	fuzz_reset_random();
	begin(&tested, initiator);
	dl_handshake_sent(&tested.h, tested.h.out_n);
	feed_pieces(&tested, data, n, piece);
	code = tested.code;
	dl_handshake_release(&tested.h);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int (*test)(int, const uint8_t *, size_t, size_t);
	int initiator;

	if (!n)
		return 0;
	fuzz_make_keys();
	test = data[0] & RAW ? with_bytes : with_peer;
	initiator = (data[0] & INITIATOR) != 0;
	if (test(initiator, data + 1, n - 1, SAID) !=
		test(initiator, data + 1, n - 1, 7))
		abort();
	return 0;
}
