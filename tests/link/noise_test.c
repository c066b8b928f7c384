/* Handshakes: vectors computed elsewhere, and what must be refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "link/mac1.h"
#include "link/noise.h"
#include "tests/link/noise_vectors.h"
#include "tests/tap.h"

enum { MESSAGES = 8, ROOM = 256 };

struct bytes {
	unsigned char b[ROOM];
	size_t n;
};

struct vector {
	char name[64];
	struct bytes init_prologue, init_static, init_ephemeral,
		init_remote_static, resp_prologue, resp_static, resp_ephemeral,
		handshake_hash, payload[MESSAGES], ciphertext[MESSAGES];
	size_t messages;
};

/* What the next random bytes are, once, when it is set: a vector's ephemeral
 * key. */
static const unsigned char *fixed;

static void random_bytes(void *const out, const size_t n)
{
	if (fixed)
		memcpy(out, fixed, n);
	else if (getentropy(out, n > ROOM ? ROOM : n))
		abort();
	fixed = NULL;
}

static uint32_t random_word(void)
{
	uint32_t v;

	random_bytes(&v, sizeof v);
	return v;
}

static const char *random_name(void)
{
	return "fixed";
}

static struct randombytes_implementation random_source = {
	.implementation_name = random_name,
	.random = random_word,
	.buf = random_bytes,
};

static struct dl_key key_of(const unsigned char *secret)
{
	struct dl_key k;

	memcpy(k.secret, secret, DL_KEY);
	crypto_scalarmult_base(k.public, k.secret);
	return k;
}

static int same(const unsigned char *p, const struct bytes *want)
{
	return memcmp(p, want->b, want->n) == 0;
}

/* One payload in the vector's words, and back; i counts both directions. */
static void test_transport(const struct vector *v, size_t i,
	struct dl_cipher *from, struct dl_cipher *to)
{
	const struct bytes *in = &v->payload[i], *want = &v->ciphertext[i];
	unsigned char out[ROOM], back[ROOM];

	ok(want->n == in->n + DL_CIPHER_TAG &&
			!dl_cipher_seal(
				from, out, in->b, in->n, NULL, 0, NULL) &&
			same(out, want),
		"message %zu is sealed", i + 1);
	ok(!dl_cipher_open(to, back, want->b, want->n, NULL, 0, NULL) &&
			same(back, in),
		"and opened");
}

static void test_handshake(const struct vector *v, struct dl_noise *init,
	struct dl_noise *resp, const unsigned char *init_public)
{
	const struct bytes *p = v->payload, *m = v->ciphertext;
	unsigned char out[ROOM], back[ROOM];

	fixed = v->init_ephemeral.b;
	ok(m[0].n == DL_NOISE_FIRST + p[0].n &&
			!dl_noise_write1(init, out, p[0].b, p[0].n, NULL) &&
			same(out, &m[0]),
		"initiator: message 1");
	ok(!dl_noise_read1(resp, back, m[0].b, m[0].n, NULL) &&
			same(back, &p[0]) &&
			!memcmp(resp->peer, init_public, DL_KEY),
		"responder: reads it, and who sent it");
	fixed = v->resp_ephemeral.b;
	ok(m[1].n == DL_NOISE_SECOND + p[1].n &&
			!dl_noise_write2(resp, out, p[1].b, p[1].n, NULL) &&
			same(out, &m[1]),
		"responder: message 2");
	ok(!dl_noise_read2(init, back, m[1].b, m[1].n, NULL) &&
			same(back, &p[1]),
		"initiator: reads it");
	ok(v->handshake_hash.n == DL_NOISE_HASH &&
			same(init->hash, &v->handshake_hash) &&
			same(resp->hash, &v->handshake_hash),
		"hash of the handshake");
}

static void test_vector(const struct vector *v)
{
	enum dl_suite suite = strstr(v->name, "AESGCM") ? DL_SUITE_AESGCM
							: DL_SUITE_CHACHAPOLY;
	struct dl_key a = key_of(v->init_static.b),
		      b = key_of(v->resp_static.b);
	struct dl_cipher from_a, to_a, from_b, to_b;
	struct dl_noise init, resp;

	if (!dl_suite_available(suite)) {
		skip("%s: not on this machine", v->name);
		return;
	}
	ok(v->messages > 2 && same(b.public, &v->init_remote_static), "%s",
		v->name);
	dl_noise_init(&init, suite, &a, v->init_remote_static.b,
		v->init_prologue.b, v->init_prologue.n);
	dl_noise_init(
		&resp, suite, &b, NULL, v->resp_prologue.b, v->resp_prologue.n);
	test_handshake(v, &init, &resp, a.public);
	dl_noise_split(&init, &from_a, &to_a);
	dl_noise_split(&resp, &from_b, &to_b);
	for (size_t i = 2; i < v->messages; i++)
		test_transport(
			v, i, i % 2 ? &from_b : &from_a, i % 2 ? &to_a : &to_b);
}

static void read_hex(const struct dl_json *j, struct bytes *out)
{
	if (sodium_hex2bin(out->b, sizeof out->b, j->text, j->len, NULL,
		    &out->n, NULL))
		out->n = 0;
}

static struct bytes *field(struct vector *v, const struct dl_json *j)
{
	const struct {
		const char *key;
		struct bytes *to;
	} fields[] = {
		{"init_prologue", &v->init_prologue},
		{"init_static", &v->init_static},
		{"init_ephemeral", &v->init_ephemeral},
		{"init_remote_static", &v->init_remote_static},
		{"resp_prologue", &v->resp_prologue},
		{"resp_static", &v->resp_static},
		{"resp_ephemeral", &v->resp_ephemeral},
		{"handshake_hash", &v->handshake_hash},
	};

	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (dl_json_is(j, fields[i].key))
			return fields[i].to;
	return NULL;
}

static void read_messages(struct dl_json *j, struct vector *v)
{
	for (; dl_json_next(j) == DL_JSON_OBJECT && v->messages < MESSAGES;
		v->messages++)
		while (dl_json_next(j) == DL_JSON_KEY) {
			struct bytes *to = dl_json_is(j, "payload")
						   ? v->payload
						   : v->ciphertext;

			dl_json_next(j);
			read_hex(j, &to[v->messages]);
		}
}

/* One object of the list, whose brace was just read. */
static void read_vector(struct dl_json *j, struct vector *v)
{
	enum dl_json_token t;

	memset(v, 0, sizeof *v);
	while (dl_json_next(j) == DL_JSON_KEY) {
		struct bytes *to = field(v, j);
		int name = dl_json_is(j, "name"),
		    messages = dl_json_is(j, "messages");

		t = dl_json_next(j);
		if (to)
			read_hex(j, to);
		else if (messages)
			read_messages(j, v);
		else
			dl_json_skip(j, t);
		if (name)
			snprintf(v->name, sizeof v->name, "%.*s", (int)j->len,
				j->text);
	}
}

static void test_vectors(const void *text, size_t n)
{
	static struct vector v;
	struct dl_err e = {0};
	struct dl_json j;
	size_t seen = 0;

	dl_json_init(&j, text, n, &e);
	for (int i = 0; i < 3; i++)
		dl_json_next(&j);
	for (; dl_json_next(&j) == DL_JSON_OBJECT; seen++) {
		read_vector(&j, &v);
		test_vector(&v);
	}
	ok(seen > 0 && !e.code, "%zu vectors%s", seen, e.text);
	dl_json_release(&j);
}

static void test_file(void)
{
	char *path = dl_sprintf(
		"%s/../shared/vectors/noise-ik.json", getenv("abs_top_srcdir"));
	struct dl_buf file = DL_BUF_INIT;

	if (!access(path, R_OK) && !dl_read_file(path, 1 << 20, &file, NULL))
		test_vectors(file.data, file.len);
	else
		skip("no vectors beside the sources");
	dl_buf_free(&file);
	free(path);
}

/* Two ends that know each other, before anything is sent. */
struct ends {
	struct dl_key a, b;
	struct dl_noise init, resp;
};

static const char prologue[] = "dl-tools 1 X run\ndl-tools 1 X\n";

static void begin(struct ends *x, enum dl_suite suite)
{
	dl_noise_init(
		&x->init, suite, &x->a, x->b.public, prologue, sizeof prologue);
	dl_noise_init(&x->resp, suite, &x->b, NULL, prologue, sizeof prologue);
}

/* Every message 1 of the same length but for one bit, and every shorter one. */
static void test_first_changed(struct ends *x, enum dl_suite suite)
{
	unsigned char m[DL_NOISE_FIRST + 5], payload[5] = "1234";
	size_t taken = 0;

	begin(x, suite);
	dl_noise_write1(&x->init, m, payload, sizeof payload, NULL);
	for (size_t bit = 0; bit < 8 * sizeof m; bit++) {
		m[bit / 8] ^= (unsigned char)(1 << bit % 8);
		begin(x, suite);
		taken += dl_noise_read1(&x->resp, payload, m, sizeof m, NULL) !=
			 DL_PROTOCOL;
		m[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	ok(taken == 0, "message 1: every flipped bit is refused");
	for (size_t n = 0; n < sizeof m; n++) {
		begin(x, suite);
		taken += dl_noise_read1(&x->resp, payload, m, n, NULL) !=
			 DL_PROTOCOL;
	}
	ok(taken == 0, "message 1: cut anywhere it is refused");
	begin(x, suite);
	ok(!dl_noise_read1(&x->resp, payload, m, sizeof m, NULL),
		"message 1: as it was it is taken");
}

static void test_second_changed(struct ends *x, enum dl_suite suite)
{
	unsigned char first[DL_NOISE_FIRST], m[DL_NOISE_SECOND];
	struct dl_noise waiting;
	size_t taken = 0;

	begin(x, suite);
	dl_noise_write1(&x->init, first, NULL, 0, NULL);
	dl_noise_read1(&x->resp, NULL, first, sizeof first, NULL);
	dl_noise_write2(&x->resp, m, NULL, 0, NULL);
	waiting = x->init;
	for (size_t bit = 0; bit < 8 * sizeof m; bit++) {
		x->init = waiting;
		m[bit / 8] ^= (unsigned char)(1 << bit % 8);
		taken += dl_noise_read2(&x->init, NULL, m, sizeof m, NULL) !=
			 DL_PROTOCOL;
		m[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	ok(taken == 0, "message 2: every flipped bit is refused");
	for (size_t n = 0; n < sizeof m; n++) {
		x->init = waiting;
		taken += dl_noise_read2(&x->init, NULL, m, n, NULL) !=
			 DL_PROTOCOL;
	}
	ok(taken == 0, "message 2: cut anywhere it is refused");
	x->init = waiting;
	ok(!dl_noise_read2(&x->init, NULL, m, sizeof m, NULL),
		"message 2: as it was it is taken");
}

/* Message 1 for another key, after other words before, in another suite. */
static void test_strangers(struct ends *x, enum dl_suite suite)
{
	unsigned char m[DL_NOISE_FIRST], m2[DL_NOISE_SECOND];
	struct dl_key other;
	struct dl_err e = {0};

	dl_key_make(&other);
	begin(x, suite);
	dl_noise_init(&x->init, suite, &x->a, other.public, prologue,
		sizeof prologue);
	dl_noise_write1(&x->init, m, NULL, 0, NULL);
	ok(dl_noise_read1(&x->resp, NULL, m, sizeof m, &e) == DL_PROTOCOL,
		"for another key: %s", e.text);
	begin(x, suite);
	dl_noise_init(&x->init, suite, &x->a, x->b.public, "x", 1);
	dl_noise_write1(&x->init, m, NULL, 0, NULL);
	ok(dl_noise_read1(&x->resp, NULL, m, sizeof m, &e) == DL_PROTOCOL,
		"another prologue");
	begin(x, DL_SUITE_CHACHAPOLY);
	dl_noise_write1(&x->init, m, NULL, 0, NULL);
	begin(x, suite);
	ok((dl_noise_read1(&x->resp, NULL, m, sizeof m, &e) == DL_PROTOCOL) ==
			(suite != DL_SUITE_CHACHAPOLY),
		"another suite");
	begin(x, suite);
	dl_noise_write1(&x->init, m, NULL, 0, NULL);
	dl_noise_read1(&x->resp, NULL, m, sizeof m, NULL);
	dl_noise_write2(&x->resp, m2, NULL, 0, NULL);
	begin(x, suite);
	dl_noise_write1(&x->init, m, NULL, 0, NULL);
	ok(dl_noise_read2(&x->init, NULL, m2, sizeof m2, &e) == DL_PROTOCOL,
		"message 2 of an earlier handshake");
}

/* Public keys with which every secret makes the same few shared ones. */
static void test_low_order(struct ends *x, enum dl_suite suite)
{
	static const unsigned char low[][DL_KEY] = {{0}, {1},
		{0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56,
			0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09, 0x8d,
			0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16,
			0x5f, 0x49, 0xb8, 0x00},
		{0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0,
			0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44, 0x5c,
			0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd,
			0xd0, 0x9f, 0x11, 0x57}};
	unsigned char m[DL_NOISE_FIRST];
	struct dl_key real = x->a;
	struct dl_noise init;
	struct dl_err e = {0};
	size_t taken = 0;

	for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
		begin(x, suite);
		memcpy(m, low[i], DL_KEY);
		taken += dl_noise_read1(&x->resp, NULL, m, sizeof m, &e) !=
				 DL_PROTOCOL ||
			 !strstr(e.text, "low order");
		taken += dl_noise_read2(&x->init, NULL, m, DL_NOISE_SECOND,
				 &e) != DL_PROTOCOL ||
			 !strstr(e.text, "low order");
		dl_noise_init(&init, suite, &x->a, low[i], "", 0);
		taken += dl_noise_write1(&init, m, NULL, 0, &e) != DL_DATA;
		memcpy(x->a.public, low[i], DL_KEY); /* a lie about itself */
		begin(x, suite);
		dl_noise_write1(&x->init, m, NULL, 0, NULL);
		taken += dl_noise_read1(&x->resp, NULL, m, sizeof m, &e) !=
				 DL_PROTOCOL ||
			 !strstr(e.text, "low order");
		x->a = real;
	}
	ok(taken == 0, "keys of low order are refused: %s", e.text);
}

static int all_zero(const void *p, size_t n)
{
	return sodium_is_zero(p, n);
}

static void test_wiped(struct ends *x, enum dl_suite suite)
{
	unsigned char m[DL_NOISE_FIRST];
	struct dl_cipher send, receive;

	begin(x, suite);
	dl_noise_write1(&x->init, m, NULL, 0, NULL);
	dl_noise_read1(&x->resp, NULL, m, sizeof m, NULL);
	dl_noise_write2(&x->resp, m, NULL, 0, NULL);
	dl_noise_split(&x->resp, &send, &receive);
	ok(all_zero(&x->resp.ephemeral, sizeof x->resp.ephemeral) &&
			all_zero(x->resp.chain, sizeof x->resp.chain) &&
			all_zero(&x->resp.cipher, sizeof x->resp.cipher) &&
			!memcmp(x->resp.peer, x->a.public, DL_KEY),
		"split wipes all but the peer and the hash");
	dl_noise_release(&x->init);
	dl_cipher_release(&send);
	ok(all_zero(&x->init, sizeof x->init) && all_zero(&send, sizeof send),
		"release wipes");
}

static void test_suite(enum dl_suite suite)
{
	struct ends x;

	if (!dl_suite_available(suite)) {
		skip("%s: not on this machine", dl_suite_name(suite));
		return;
	}
	ok(1, "%s", dl_suite_name(suite));
	dl_key_make(&x.a);
	dl_key_make(&x.b);
	test_first_changed(&x, suite);
	test_second_changed(&x, suite);
	test_strangers(&x, suite);
	test_low_order(&x, suite);
	test_wiped(&x, suite);
}

/* The expectation is Python's hashlib.blake2b, twice. */
static void test_mac1(void)
{
	static const char lines[] = "dl-tools 1 ChaChaPoly myrun\n"
				    "dl-tools 1 ChaChaPoly\n";
	unsigned char key[DL_KEY], message[DL_NOISE_FIRST], mac[DL_MAC1];
	char hex[2 * DL_MAC1 + 1];
	size_t n = sizeof lines - 1, taken = 0;

	for (size_t i = 0; i < sizeof message; i++)
		message[i] = (unsigned char)i;
	memcpy(key, message, sizeof key);
	dl_mac1_make(mac, key, lines, n, message, sizeof message);
	ok(!strcmp(sodium_bin2hex(hex, sizeof hex, mac, sizeof mac),
		   "585052d203da9c32a68c146b82cabcb1"),
		"mac1 %s", hex);
	ok(dl_mac1_check(mac, key, lines, n, message, sizeof message),
		"mac1 is good");
	for (size_t bit = 0; bit < 8 * sizeof mac; bit++) {
		mac[bit / 8] ^= (unsigned char)(1 << bit % 8);
		taken += (size_t)dl_mac1_check(
			mac, key, lines, n, message, sizeof message);
		mac[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	taken += (size_t)dl_mac1_check(
		mac, key, lines, n - 1, message, sizeof message);
	message[95] ^= 1;
	taken += (size_t)dl_mac1_check(
		mac, key, lines, n, message, sizeof message);
	message[95] ^= 1;
	key[0] ^= 1;
	taken += (size_t)dl_mac1_check(
		mac, key, lines, n, message, sizeof message);
	ok(taken == 0, "mac1 changed, of other bytes, another key: no");
}

int main(void)
{
	randombytes_set_implementation(&random_source);
	if (sodium_init() < 0)
		return 99;
	test_vectors(noise_vectors, sizeof noise_vectors - 1);
	test_file();
	for (int suite = 0; suite < DL_SUITES; suite++)
		test_suite((enum dl_suite)suite);
	test_mac1();
	return done_testing();
}
