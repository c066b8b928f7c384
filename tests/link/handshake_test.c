/*
 * The beginning of a session, both roles against each other by hand.
 */
#include <string.h>

#include "link/handshake.h"
#include "tests/tap.h"

static struct dl_key syncer, learner, other;

/* What one end said, in the order of its output. */
struct said {
	unsigned char bytes[1024];
	size_t n;
};

struct ends {
	struct dl_handshake learner, syncer;
	struct dl_err learner_why, syncer_why;
	struct said learner_said, syncer_said;
	size_t step; /* bytes that go over at once */
	size_t cut;  /* bytes of the syncer's that go over at all */
	/* bit flip_bit of byte flip_at of what from says is changed */
	struct dl_handshake *flip_from;
	size_t flip_at;
	unsigned flip_bit;
};

static void begin(struct ends *x, const unsigned char *pin, const char *run)
{
	struct dl_handshake_config c = {&learner, pin, run};

	memset(x, 0, sizeof(*x));
	x->step = x->cut = SIZE_MAX;
	dl_handshake_init(&x->learner, &c);
	c = (struct dl_handshake_config){&syncer, NULL, "demo"};
	dl_handshake_init(&x->syncer, &c);
}

static void end(struct ends *x)
{
	dl_handshake_release(&x->learner);
	dl_handshake_release(&x->syncer);
}

/* Carries over what from has to say; the number of bytes. */
static size_t carry(struct ends *x, struct dl_handshake *from,
	struct said *said, struct dl_handshake *to, struct dl_err *why)
{
	size_t n = from->out_n < x->step ? from->out_n : x->step, used;
	unsigned char bytes[sizeof(from->out)];

	if (from == &x->syncer && n > x->cut - said->n)
		n = x->cut - said->n;
	memcpy(bytes, from->out, n);
	if (x->flip_from == from && x->flip_at - said->n < n)
		bytes[x->flip_at - said->n] ^=
			(unsigned char)(1 << x->flip_bit);
	memcpy(said->bytes + said->n, bytes, n);
	said->n += n;
	dl_handshake_sent(from, n);
	if (n && to->state != DL_HANDSHAKE_FAILED)
		dl_handshake_feed(to, bytes, n, &used, why);
	return n;
}

static void settle(struct ends *x)
{
	while (carry(x, &x->learner, &x->learner_said, &x->syncer,
		       &x->syncer_why) +
		carry(x, &x->syncer, &x->syncer_said, &x->learner,
			&x->learner_why))
		;
}

static int both_done(const struct ends *x)
{
	return dl_handshake_done(&x->learner) && dl_handshake_done(&x->syncer);
}

/* A frame each way, and each knows the other. */
static int agree(struct ends *x)
{
	struct dl_cipher a[2], b[2];
	unsigned char a_peer[DL_KEY], b_peer[DL_KEY], p[5 + DL_CIPHER_TAG];
	int i, wrong = 0;

	dl_handshake_split(&x->learner, &a[0], &a[1], a_peer);
	dl_handshake_split(&x->syncer, &b[1], &b[0], b_peer);
	for (i = 0; i < 2; i++) {
		wrong += dl_cipher_seal(i ? &b[1] : &a[0], p,
			(const unsigned char *)"hello", 5, NULL, 0, NULL);
		wrong += dl_cipher_open(
			i ? &a[1] : &b[0], p, p, sizeof(p), NULL, 0, NULL);
		wrong += memcmp(p, "hello", 5) != 0;
		dl_cipher_release(&a[i]);
		dl_cipher_release(&b[i]);
	}
	return !wrong && !memcmp(a_peer, syncer.public, DL_KEY) &&
	       !memcmp(b_peer, learner.public, DL_KEY);
}

static void test_sound(struct ends *x, size_t step, const char *run)
{
	begin(x, syncer.public, run);
	x->step = step;
	settle(x);
	ok(both_done(x) && agree(x), "a session, %zu bytes at a time, run %s",
		step == SIZE_MAX ? 0 : step, *run ? run : "any");
	end(x);
}

static void test_wrong(struct ends *x)
{
	begin(x, other.public, "demo");
	settle(x);
	ok(x->syncer_why.code == DL_PROTOCOL &&
			x->learner_why.code == DL_PROTOCOL &&
			strstr(x->learner_why.text, "has another key"),
		"another key: %s", x->learner_why.text);
	end(x);
	begin(x, syncer.public, "elsewhere");
	settle(x);
	ok(x->syncer_why.code == DL_DATA && x->learner_why.code == DL_DATA &&
			strstr(x->learner_why.text, "no run elsewhere"),
		"another run: %s", x->learner_why.text);
	end(x);
}

/* The curve is not touched by who does not know the key. */
static void test_mac_first(struct ends *x)
{
	struct dl_noise before;

	begin(x, other.public, "demo");
	carry(x, &x->learner, &x->learner_said, &x->syncer, &x->syncer_why);
	carry(x, &x->syncer, &x->syncer_said, &x->learner, &x->learner_why);
	before = x->syncer.noise;
	carry(x, &x->learner, &x->learner_said, &x->syncer, &x->syncer_why);
	ok(x->syncer.state == DL_HANDSHAKE_FAILED &&
			!memcmp(&before, &x->syncer.noise, sizeof(before)),
		"a wrong mac1 reaches no Noise");
	end(x);
}

/* Every byte of the n that from says, every bit: no session. */
static void test_flips(struct ends *x, int learners, size_t n)
{
	size_t i, taken = 0;

	for (i = 0; i < 8 * n; i++) {
		begin(x, syncer.public, "demo");
		x->flip_from = learners ? &x->learner : &x->syncer;
		x->flip_at = i / 8;
		x->flip_bit = i % 8;
		settle(x);
		taken += both_done(x) && agree(x);
		end(x);
	}
	ok(taken == 0, "%zu flipped bits of the %s give no session", 8 * n,
		learners ? "learner" : "syncer");
}

/* What was said, cut anywhere: more is awaited, and nothing fails. */
static void test_cuts(struct ends *x, const struct said *said, size_t answer)
{
	struct dl_handshake_config c = {&syncer, NULL, "demo"};
	struct dl_handshake h;
	size_t n, used, wrong = 0;

	for (n = 0; n < said->n; n++) {
		dl_handshake_init(&h, &c);
		wrong += dl_handshake_feed(&h, said->bytes, n, &used, NULL) ||
			 used != n || dl_handshake_done(&h);
		dl_handshake_release(&h);
	}
	ok(wrong == 0, "%zu cuts of what the learner says", n);
	for (n = 0; n < answer; n++) {
		begin(x, syncer.public, "demo");
		x->cut = n;
		settle(x);
		wrong += x->learner_why.code || dl_handshake_done(&x->learner);
		end(x);
	}
	ok(wrong == 0, "%zu cuts of what the syncer answers", n);
}

/* An old message 1, played again, gets an answer and no further. */
static void test_replay(const struct said *said)
{
	struct dl_handshake_config c = {&syncer, NULL, "demo"};
	unsigned char peer[DL_KEY], frame[5 + DL_CIPHER_TAG];
	struct dl_cipher send, receive;
	struct dl_handshake h;
	size_t used;
	int code;

	dl_handshake_init(&h, &c);
	code = dl_handshake_feed(&h, said->bytes, said->n, &used, NULL);
	ok(!code && dl_handshake_done(&h), "an old message 1 is answered");
	dl_handshake_split(&h, &send, &receive, peer);
	memset(frame, 7, sizeof(frame));
	ok(dl_cipher_open(&receive, frame, frame, sizeof(frame), NULL, 0,
		   NULL) == DL_PROTOCOL,
		"and nothing that follows it opens");
	dl_cipher_release(&send);
	dl_cipher_release(&receive);
	dl_handshake_release(&h);
}

static void test_rest(struct ends *x)
{
	unsigned char bytes[sizeof(x->syncer.out) + 3];
	size_t used, n;
	int code;

	begin(x, syncer.public, "demo");
	carry(x, &x->learner, &x->learner_said, &x->syncer, &x->syncer_why);
	carry(x, &x->syncer, &x->syncer_said, &x->learner, &x->learner_why);
	carry(x, &x->learner, &x->learner_said, &x->syncer, &x->syncer_why);
	n = x->syncer.out_n;
	memcpy(bytes, x->syncer.out, n);
	memcpy(bytes + n, "abc", 3);
	code = dl_handshake_feed(&x->learner, bytes, n + 3, &used, NULL);
	ok(!code && dl_handshake_done(&x->learner) && used == n,
		"what follows the handshake is left alone");
	end(x);
}

/* What others say to an acceptor, or to an initiator. */
static void test_strangers(void)
{
	static const struct {
		const char *text;
		size_t n;
		int code;
	} to_learner[] =
		{
			{"HTTP/1.1 400 Bad Request\r\n", 26, DL_PROTOCOL},
			{"error 75 too many handshakes\n", 29, DL_TEMPFAIL},
			{"error 77 not here\n", 18, DL_NOPERM},
			{"dl-tools 1 ChaChaPoly\n\0\0error 75 later\n", 39,
				DL_TEMPFAIL},
			{"dl-tools 1 ChaChaPoly\n\0\0dl-tools 1 ChaChaPoly\n",
				46, DL_PROTOCOL},
			{"dl-tools 1 ChaChaPoly\n\x31\0", 24, DL_PROTOCOL},
			{"dl-tools 1 ChaChaPoly\n\xff\xff", 24, DL_PROTOCOL},
		},
	  to_syncer[] = {
		  {"GET / HTTP/1.0\r\n", 16, DL_PROTOCOL},
		  {"\x10\0\0hello", 8, DL_PROTOCOL},
		  {"dl-tools 2 ChaChaPoly demo\n", 27, DL_PROTOCOL},
		  {"dl-tools 1 ChaChaPoly demo\n\0\0", 29, DL_PROTOCOL},
		  {"dl-tools 1 ChaChaPoly demo\n\x6f\0", 29, DL_PROTOCOL},
		  {"dl-tools 1 ChaChaPoly demo\n\xff\xff", 29, DL_PROTOCOL},
	  };
	struct dl_handshake_config c = {&learner, syncer.public, ""};
	struct dl_handshake h;
	struct dl_err e;
	size_t i, used;
	int code;

	for (i = 0; i < sizeof(to_learner) / sizeof(*to_learner); i++) {
		dl_handshake_init(&h, &c);
		code = dl_handshake_feed(
			&h, to_learner[i].text, to_learner[i].n, &used, &e);
		ok(code == to_learner[i].code, "a learner hears %zu: %s", i,
			e.text);
		dl_handshake_release(&h);
	}
	c = (struct dl_handshake_config){&syncer, NULL, "demo"};
	for (i = 0; i < sizeof(to_syncer) / sizeof(*to_syncer); i++) {
		dl_handshake_init(&h, &c);
		code = dl_handshake_feed(
			&h, to_syncer[i].text, to_syncer[i].n, &used, &e);
		ok(code == to_syncer[i].code, "a syncer hears %zu: %s", i,
			e.text);
		dl_handshake_release(&h);
	}
}

int main(void)
{
	struct said learner_said, syncer_said;
	struct ends x;

	if (sodium_init() < 0)
		return 99;
	dl_key_make(&syncer);
	dl_key_make(&learner);
	dl_key_make(&other);
	test_sound(&x, SIZE_MAX, "demo");
	test_sound(&x, 1, "demo");
	test_sound(&x, 3, "");
	test_wrong(&x);
	test_mac_first(&x);
	begin(&x, syncer.public, "demo");
	settle(&x);
	learner_said = x.learner_said;
	syncer_said = x.syncer_said;
	end(&x);
	test_flips(&x, 1, learner_said.n);
	test_flips(&x, 0, syncer_said.n);
	test_cuts(&x, &learner_said, syncer_said.n);
	test_replay(&learner_said);
	test_rest(&x);
	test_strangers();
	return done_testing();
}
