/*
 * Pieces over streams that lose, delay and reorder them, without any socket.
 */
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "link/stripe.h"
#include "tests/tap.h"

enum {
	BYTES = 5 << 20,
	WINDOW = 1 << 20,
	PIECE = 30000,
	STREAMS = 5,
	QUEUE = 12, /* pieces under way on a stream */
	ROUNDS = 200000,
};

struct stream {
	struct dl_piece way[QUEUE];
	size_t n;
	int dead;
};

struct trial {
	struct dl_stripe_out out;
	struct dl_stripe_in in;
	struct stream stream[STREAMS];
	unsigned char *sent, *got;
	uint64_t at; /* bytes handed on */
	uint64_t copied, losses;
	int bad;
	struct dl_rng rng;
};

static size_t draw(struct trial *t, size_t n)
{
	return (size_t)dl_rng_below(&t->rng, n);
}

/* In order and byte for byte what an unstriped transfer would bring. */
static void hand_on(struct trial *t, const unsigned char *piece, size_t n)
{
	const unsigned char *p;
	size_t m;

	while ((m = dl_stripe_take(&t->in, &p))) {
		if (t->at + m > BYTES) {
			t->bad = 1;
			return;
		}
		if (p < piece || p >= piece + n)
			t->copied += m;
		memcpy(t->got + t->at, p, m);
		t->at += m;
	}
}

static void send_some(struct trial *t, unsigned i)
{
	struct stream *s = &t->stream[i];
	struct dl_piece p;

	if (s->dead || s->n == QUEUE)
		return;
	if (!dl_stripe_give(&t->out, i, BYTES, 1 + draw(t, PIECE), &p))
		return;
	t->bad |= p.n == 0 || p.offset + p.n > t->out.received + WINDOW;
	s->way[s->n++] = p;
}

static void deliver_one(struct trial *t, unsigned i)
{
	struct stream *s = &t->stream[i];
	struct dl_piece p = s->way[0];
	unsigned char *copy;
	struct dl_err e;

	if (!s->n)
		return;
	memmove(s->way, s->way + 1, --s->n * sizeof(*s->way));
	copy = dl_alloc(p.n);
	memcpy(copy, t->sent + p.offset, p.n);
	if (dl_stripe_put(&t->in, p.offset, copy, p.n, &e))
		t->bad = 1;
	else
		hand_on(t, copy, p.n);
	free(copy);
}

/* Some of what it had comes yet, the rest never; it is dialled again. */
static void lose(struct trial *t, unsigned i)
{
	size_t left = draw(t, QUEUE);

	while (t->stream[i].n && left--)
		deliver_one(t, i);
	t->stream[i].n = 0;
	dl_stripe_lost(&t->out, i);
	t->losses++;
}

static void begin(struct trial *t, uint64_t seed)
{
	size_t i;

	*t = (struct trial){.rng = {seed, 0}};
	dl_stripe_out_init(&t->out, WINDOW);
	dl_stripe_in_init(&t->in, WINDOW);
	t->sent = dl_alloc(BYTES);
	t->got = dl_alloc(BYTES);
	for (i = 0; i < BYTES; i++)
		t->sent[i] = (unsigned char)dl_rng_next(&t->rng);
}

static void end(struct trial *t)
{
	dl_stripe_out_release(&t->out);
	dl_stripe_in_release(&t->in);
	free(t->sent);
	free(t->got);
}

static void run(struct trial *t, unsigned streams, size_t loss)
{
	struct dl_err e;
	unsigned i;
	size_t k;

	for (k = 0; k < ROUNDS && t->out.received < BYTES; k++) {
		i = (unsigned)draw(t, streams);
		if (draw(t, 2))
			send_some(t, i);
		else
			deliver_one(t, i);
		if (loss && !draw(t, loss))
			lose(t, i);
		if (!draw(t, 8) && dl_stripe_received(&t->out, t->in.next, &e))
			t->bad = 1;
	}
}

static void test_transfer(unsigned streams, size_t loss, uint64_t seed)
{
	struct trial t;

	begin(&t, seed);
	run(&t, streams, loss);
	ok(!t.bad && t.at == BYTES && !memcmp(t.sent, t.got, BYTES),
		"%u streams, %llu losses: the bytes, in order", streams,
		(unsigned long long)t.losses);
	ok(t.out.received == BYTES && !t.out.pieces && !t.out.lost,
		"all acknowledged, nothing out");
	if (streams == 1 && !loss)
		ok(!t.copied && !t.in.ring, "in order: nothing is copied");
	end(&t);
}

/* A stream that is silent for ever holds the window, its loss frees it. */
static void test_stall(void)
{
	struct trial t;
	size_t i;

	begin(&t, 7);
	send_some(&t, 0);
	for (i = 0; i < 5000; i++) {
		send_some(&t, 1);
		deliver_one(&t, 1);
	}
	ok(!t.bad && t.at == 0 && t.out.given == WINDOW,
		"never more than the window beyond what is missing");
	ok(!dl_stripe_can_give(&t.out, BYTES), "and then nothing goes");
	lose(&t, 0);
	send_some(&t, 1);
	deliver_one(&t, 1);
	ok(!t.bad && t.at == WINDOW && !memcmp(t.sent, t.got, WINDOW),
		"what was lost goes over another stream");
	end(&t);
}

static void test_hostile_pieces(void)
{
	static const uint64_t offsets[] = {UINT64_C(1) << 63, UINT64_MAX,
		WINDOW, WINDOW - 1, UINT64_MAX - WINDOW};
	struct dl_stripe_in in;
	const unsigned char *p;
	struct dl_err e;
	size_t i;

	dl_stripe_in_init(&in, WINDOW);
	for (i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		ok(dl_stripe_put(&in, offsets[i], "ab", 2, &e) == DL_PROTOCOL &&
				!in.ring,
			"%s", e.text);
	ok(dl_stripe_put(&in, 0, "", 0, &e) == DL_PROTOCOL, "%s", e.text);
	ok(!dl_stripe_put(&in, 0, "ab", 2, &e) &&
			dl_stripe_take(&in, &p) == 2 && !memcmp(p, "ab", 2),
		"a good piece is taken after all of them");
	ok(!dl_stripe_put(&in, 0, "a", 1, &e) && !dl_stripe_take(&in, &p),
		"what was handed on is passed over");
	dl_stripe_in_release(&in);
}

/* One byte, a hole, one byte: the account of them is bounded. */
static void test_crumbs(void)
{
	struct dl_stripe_in in;
	const unsigned char *p;
	uint64_t at = 1;
	struct dl_err e;
	int code = 0;

	dl_stripe_in_init(&in, WINDOW);
	while (!code && at < WINDOW) {
		code = dl_stripe_put(&in, at, "x", 1, &e);
		at += 2;
	}
	ok(code == DL_PROTOCOL && in.spans == DL_STRIPE_SPANS, "%s", e.text);
	ok(!dl_stripe_put(&in, 2, "y", 1, &e) &&
			in.spans == DL_STRIPE_SPANS - 1,
		"a byte that fills a hole still fits");
	ok(!dl_stripe_put(&in, 0, "abcdef", 6, &e) &&
			dl_stripe_take(&in, &p) == 6 && !memcmp(p, "abcdef", 6),
		"a piece over several of them is handed on whole");
	ok(!dl_stripe_take(&in, &p) && in.next == 6 && in.span[0].from == 7,
		"and they are passed over");
	dl_stripe_in_release(&in);
}

static void test_overlap(void)
{
	struct dl_stripe_in in;
	const unsigned char *p;
	struct dl_err e;
	char got[16] = "";
	size_t n, at = 0;

	dl_stripe_in_init(&in, WINDOW);
	dl_stripe_put(&in, 4, "efgh", 4, &e);
	dl_stripe_put(&in, 6, "GHij", 4, &e);
	ok(in.spans == 1, "pieces that overlap are one");
	dl_stripe_put(&in, 0, "abcde", 5, &e);
	while ((n = dl_stripe_take(&in, &p)) && at + n < sizeof(got)) {
		memcpy(got + at, p, n);
		at += n;
	}
	ok(!strcmp(got, "abcdefGHij"), "of what came twice the last: %s", got);
	dl_stripe_in_release(&in);
}

static void test_hostile_received(void)
{
	struct dl_stripe_out out;
	struct dl_piece p;
	struct dl_err e;

	dl_stripe_out_init(&out, WINDOW);
	dl_stripe_give(&out, 0, 100, 60, &p);
	ok(dl_stripe_received(&out, 61, &e) == DL_PROTOCOL, "%s", e.text);
	ok(dl_stripe_received(&out, UINT64_C(1) << 63, &e) == DL_PROTOCOL, "%s",
		e.text);
	ok(!dl_stripe_received(&out, 20, &e), "some of a piece");
	ok(dl_stripe_received(&out, 19, &e) == DL_PROTOCOL, "%s", e.text);
	dl_stripe_lost(&out, 0);
	ok(dl_stripe_give(&out, 1, 100, 60, &p) && p.offset == 20 && p.n == 40,
		"only the rest of it goes again");
	dl_stripe_out_release(&out);
}

/* As many as can be out: then none, until the first is acknowledged. */
static void test_pieces(void)
{
	struct dl_stripe_out out;
	struct dl_piece p;
	struct dl_err e;
	size_t n = 0;

	dl_stripe_out_init(&out, WINDOW);
	while (dl_stripe_give(&out, n % 3, BYTES, 2, &p))
		n++;
	ok(n == DL_STRIPE_PIECES, "%zu pieces out at once", n);
	ok(!dl_stripe_received(&out, 2, &e) &&
			dl_stripe_give(&out, 0, BYTES, 2, &p) &&
			p.offset == 2 * n,
		"one acknowledged, one more");
	dl_stripe_out_release(&out);
}

/* What the socket did not take is given again, in the same order. */
static void test_take_back(void)
{
	struct dl_stripe_out out;
	struct dl_piece p[4], q;
	int i;

	dl_stripe_out_init(&out, WINDOW);
	dl_stripe_give(&out, 0, BYTES, 10, &p[0]);
	dl_stripe_give(&out, 1, BYTES, 10, &p[1]);
	dl_stripe_lost(&out, 0);
	for (i = 0; i < 4; i++)
		dl_stripe_give(&out, 1, BYTES, 10, &p[i]);
	while (i-- > 0)
		dl_stripe_take_back(&out, &p[i]);
	ok(out.given == 20 && out.lost == 1 && out.pieces == 2,
		"nothing of it has happened");
	for (i = 0; i < 4; i++)
		if (!dl_stripe_give(&out, 2, BYTES, 10, &q) ||
			q.offset != p[i].offset || q.n != p[i].n)
			break;
	ok(i == 4, "and it goes anew");
	dl_stripe_out_release(&out);
}

int main(void)
{
	uint64_t seed;

	test_transfer(1, 0, 1);
	test_transfer(4, 0, 2);
	for (seed = 3; seed < 8; seed++)
		test_transfer(STREAMS, 40, seed);
	test_transfer(1, 30, 8);
	test_stall();
	test_hostile_pieces();
	test_crumbs();
	test_overlap();
	test_hostile_received();
	test_pieces();
	test_take_back();
	return done_testing();
}
