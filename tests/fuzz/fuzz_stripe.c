/*
 * Any order of pieces given, lost, come, come twice and acknowledged, and any
 * piece of a hostile peer's among them: what is handed on is the stream, byte
 * for byte, all that is out fits the window, and at the end all arrives.
 *
 * The input is steps of three bytes: what, and two arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz.h"
#include "link/stripe.h"

enum { STREAMS = 4, LONGEST = 1024, MAX = 48, TOTAL = 4096, TAKEN = 512 };

/* Pieces on their way, on streams that may be lost. */
struct way {
	struct dl_piece piece[TAKEN];
	unsigned stream[TAKEN];
	size_t n;
};

struct ends {
	struct dl_stripe_out out;
	struct dl_stripe_in in;
	struct way way;
	uint64_t end, handed;
};

/* What the stream has at offset. */
static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 37 + (offset >> 8));
}

static void hand_on(struct ends *x)
{
	const unsigned char *p;
	size_t n;

	while ((n = dl_stripe_take(&x->in, &p)))
		for (size_t i = 0; i < n; i++)
			if (p[i] != byte_at(x->handed++))
				abort();
	if (x->in.next != x->handed)
		abort();
}

/* n bytes come at offset; 0 when they are refused. */
static int put(struct ends *x, uint64_t offset, size_t n)
{
	struct dl_stripe_in before = x->in;
	uint8_t bytes[256];
	struct dl_err e = {0};

	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(offset + i);
	if (dl_stripe_put(&x->in, offset, bytes, n, &e)) {
		if (e.code != DL_PROTOCOL || !e.text[0] ||
			before.next != x->in.next ||
			before.spans != x->in.spans ||
			before.ring != x->in.ring)
			abort();
		return 0;
	}
	hand_on(x);
	return 1;
}

static int give(struct ends *x, unsigned stream)
{
	struct way *w = &x->way;
	struct dl_piece p;

	if (w->n == TAKEN || !dl_stripe_give(&x->out, stream, x->end, MAX, &p))
		return 0;
	if (!p.n || p.n > MAX || p.offset + p.n > x->end ||
		p.offset + p.n > x->out.received + x->out.window)
		abort();
	w->stream[w->n] = stream;
	w->piece[w->n++] = p;
	return 1;
}

static void forget(struct way *w, size_t i)
{
	w->n--;
	w->piece[i] = w->piece[w->n];
	w->stream[i] = w->stream[w->n];
}

/* The piece arrives: its bytes are within the window by the sender's account,
 * so none is refused, though the receiver may have had them already. */
static void arrive(struct ends *x, size_t i, int again)
{
	struct dl_piece p = x->way.piece[i];

	if (!put(x, p.offset, p.n) && x->in.spans < DL_STRIPE_SPANS)
		abort();
	if (!again)
		forget(&x->way, i);
}

static void lose(struct ends *x, unsigned stream)
{
	for (size_t i = x->way.n; i-- > 0;)
		if (x->way.stream[i] == stream)
			forget(&x->way, i);
	dl_stripe_lost(&x->out, stream);
}

static void acknowledge(struct ends *x, uint64_t offset)
{
	uint64_t had = x->out.received;
	int code = dl_stripe_received(&x->out, offset, NULL);

	if (!code != (offset >= had && offset <= x->out.given))
		abort();
}

static void step(struct ends *x, const uint8_t *s)
{
	unsigned stream = s[1] % STREAMS;

	switch (s[0] % 7) {
	case 0:
		x->end += s[1] < TOTAL - x->end ? s[1] : 0;
		break;
	case 1:
		give(x, stream);
		break;
	case 2:
	case 3:
		if (x->way.n)
			arrive(x, s[1] % x->way.n, s[0] % 7 == 3);
		break;
	case 4:
		lose(x, stream);
		break;
	case 5:
		acknowledge(x, x->handed);
		break;
	case 6: /* bytes of the sender's own, from anywhere */
		put(x, (uint64_t)s[1] << (s[2] % 60), s[2]);
		break;
	}
	if (x->out.given > x->out.received + x->out.window)
		abort();
}

/* The streams but one are gone, and it brings the rest. */
static void settle(struct ends *x)
{
	for (unsigned stream = 0; stream < STREAMS; stream++)
		lose(x, stream);
	acknowledge(x, x->handed < x->out.given ? x->handed : x->out.given);
	while (give(x, 0)) {
		arrive(x, 0, 0);
		acknowledge(
			x, x->handed < x->out.given ? x->handed : x->out.given);
	}
	if (x->handed < x->end || x->out.received != x->end)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct ends x;

	if (!n || n > LONGEST)
		return 0;
	memset(&x, 0, sizeof(x));
	dl_stripe_out_init(&x.out, data[0] + 1);
	dl_stripe_in_init(&x.in, data[0] + 1);
	for (size_t at = 1; at + 3 <= n; at += 3)
		step(&x, data + at);
	settle(&x);
	dl_stripe_out_release(&x.out);
	dl_stripe_in_release(&x.in);
	return 0;
}
