/*
 * Two connections over a socket pair, worked by hand: plain, and in a session.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "base/rng.h"
#include "link/conn.h"
#include "tests/link/pair.h"
#include "tests/tap.h"

enum { KEYS = 10, VALUES = 60000 };

/* What one side has been told, and where its data goes. */
struct side {
	struct dl_conn c;
	struct dl_err why;
	int over;
	uint64_t messages, records;
	uint64_t last;		 /* step of the last message */
	uint64_t disorder;	 /* messages or records that came wrong */
	uint64_t last_seq[KEYS]; /* of the last record of each key */
	uint64_t order;		 /* keys of the records, a digit each */
	uint64_t at_message;	 /* records that had come before it */
	int refuse, skip, finish;
	float dest[VALUES];
	size_t dest_n;
	struct dl_message last_message;
	char text[256];
};

static int got_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct side *s = ctx;

	s->messages++;
	if (m->kind == DL_MSG_END)
		s->disorder += m->step != s->last + 1;
	s->last = m->step;
	s->at_message = s->records;
	s->last_message = *m;
	if (m->kind == DL_MSG_ERROR)
		snprintf(s->text, sizeof(s->text), "%s", m->text);
	if (s->refuse)
		return dl_fail(e, DL_NOPERM, "not you");
	if (s->finish)
		dl_conn_finish(c, INT64_MAX);
	return 0;
}

static int begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct side *s = ctx;

	(void)c;
	(void)m;
	if (h->data_size > sizeof(s->dest))
		return dl_fail(e, DL_DATA, "too large");
	s->dest_n = h->data_size / sizeof(float);
	memset(s->dest, 0xff, h->data_size);
	if (!s->skip)
		*dest = s->dest;
	return 0;
}

static int whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct side *s = ctx;
	size_t wrong = dest ? pair_wrong(s->dest, s->dest_n, m->seq) : 0;

	(void)c;
	(void)h;
	(void)e;
	s->disorder += wrong || m->seq <= s->last_seq[m->fragment] ||
		       (dest == NULL) != s->skip;
	s->last_seq[m->fragment] = m->seq;
	s->order = s->order * 10 + m->fragment;
	s->records++;
	return 0;
}

static const struct dl_conn_handlers handlers = {got_message, begin, whole};

static int sealed; /* by a session between: */
static struct dl_key learner_key, syncer_key;
static const struct dl_handshake_config learner = {
	&learner_key, syncer_key.public, ""};
static const struct dl_handshake_config syncer = {&syncer_key, NULL, "demo"};

struct pair {
	struct side a, b;
};

static void close_pair(struct pair *p)
{
	dl_conn_release(&p->a.c);
	dl_conn_release(&p->b.c);
}

/* Polls and works one side at time now; 1 when there was something to do. */
static int work(struct side *s, int64_t now)
{
	struct pollfd fd = {.fd = s->c.main.fd};

	if (s->over)
		return 0;
	fd.events = dl_conn_events(&s->c);
	poll(&fd, 1, 0);
	if (!fd.revents && now < dl_conn_deadline(&s->c))
		return 0;
	s->over = dl_conn_work(&s->c, fd.revents, now, &s->why);
	return 1;
}

/* Works both until nothing moves. */
static void settle(struct pair *p, int64_t now)
{
	while (work(&p->a, now) + work(&p->b, now))
		;
}

static void open_pair(struct pair *p, int buffer)
{
	struct dl_conn_config cf = {
		.handlers = &handlers,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_FILE,
		.queue = DL_CONN_QUEUE,
	};
	int fd[2];

	memset(p, 0, sizeof(*p));
	pair_sockets(fd, buffer);
	cf.ctx = &p->a;
	cf.session = sealed ? &learner : NULL;
	dl_conn_init(&p->a.c, fd[0], &cf, 0);
	cf.ctx = &p->b;
	cf.session = sealed ? &syncer : NULL;
	dl_conn_init(&p->b.c, fd[1], &cf, 0);
	settle(p, 0);
}

/* What the caller keeps for a record on its way. */
struct sending {
	float *values;
	int done, sent;
};

static void released(void *ctx, int sent)
{
	struct sending *s = ctx;

	s->done++;
	s->sent += sent;
	free(s->values);
	s->values = NULL;
}

static void send_values(
	struct side *s, uint64_t key, uint64_t seq, size_t n, struct sending *x)
{
	*x = (struct sending){dl_alloc_array(n + 1, sizeof(float)), 0, 0};
	pair_send_values(&s->c, key, seq, x->values, n, released, x);
}

/* Control messages overtake data that waits, even between its frames. */
static void test_overtake(struct pair *p)
{
	struct sending x[2];

	open_pair(p, 4096);
	send_values(&p->a, 0, 1, VALUES, &x[0]);
	send_values(&p->a, 0, 2, 100, &x[1]);
	work(&p->a, 0); /* fills the socket with the start of the first */
	ok(p->a.c.main.bytes_out > 0 && dl_conn_waiting(&p->a.c) > 100000,
		"a small socket takes a part");
	pair_send_end(&p->a.c, 1);
	settle(p, 0);
	ok(p->b.messages == 1 && p->b.records == 2 && !p->b.disorder,
		"everything arrives as sent");
	ok(p->b.at_message == 0, "control overtakes data on its way");
	ok(x[0].done == 1 && x[0].sent == 1 && x[1].done == 1 && x[1].sent,
		"both records are released once, as sent");
	ok(p->a.c.main.bytes_out == p->b.c.main.bytes_in &&
			!dl_conn_waiting(&p->a.c),
		"the counters agree");
	ok(dl_conn_events(&p->a.c) == POLLIN, "and nothing more is wanted");
	close_pair(p);
}

static void test_replace(struct pair *p)
{
	struct sending x[6];

	open_pair(p, 4096);
	send_values(&p->a, 7, 1, VALUES, &x[0]);
	work(&p->a, 0);
	send_values(&p->a, 7, 2, 1000, &x[1]); /* 1 is begun: waits behind */
	send_values(&p->a, 8, 4, 1000, &x[2]);
	send_values(&p->a, 7, 3, 1000, &x[3]); /* takes the place of 2 */
	send_values(&p->a, 9, 5, 1000, &x[4]);
	send_values(&p->a, 0, 6, 0, &x[5]);
	ok(x[1].done == 1 && !x[1].sent && !x[0].done,
		"a newer one replaces what is unsent, not what is begun");
	ok(dl_conn_waits(&p->a.c, 7) && dl_conn_waits(&p->a.c, 9) &&
			!dl_conn_waits(&p->a.c, 10),
		"what waits is known");
	settle(p, 0);
	ok(p->b.records == 5 && p->b.last_seq[0] == 6 && !p->b.disorder,
		"the rest arrives, in order");
	ok(!dl_conn_waits(&p->a.c, 7), "what is begun or sent does not");
	ok(x[0].sent == 1 && x[4].sent == 1 && x[2].sent == 1 &&
			x[3].sent == 1 && x[5].sent == 1,
		"and is released as sent");
	send_values(&p->a, 1, 7, VALUES, &x[0]);
	work(&p->a, 0);
	send_values(&p->a, 1, 8, 10, &x[1]);
	close_pair(p);
	ok(x[0].done == 1 && !x[0].sent && x[1].done == 1 && !x[1].sent,
		"what waits at the end is released as not sent");
}

static void test_smallest_first(struct pair *p)
{
	struct sending x[6];

	open_pair(p, 4096);
	send_values(&p->a, 1, 1, VALUES, &x[0]);
	work(&p->a, 0);
	send_values(&p->a, 2, 2, 3000, &x[1]);
	send_values(&p->a, 3, 3, 1000, &x[2]);
	send_values(&p->a, 4, 4, 3000, &x[3]);
	dl_conn_smallest_first(&p->a.c);
	send_values(&p->a, 6, 5, 1000, &x[4]);
	send_values(&p->a, 5, 6, 2000, &x[5]);
	settle(p, 0);
	ok(p->b.order == 136524 && !p->b.disorder,
		"when time is short the smallest goes first, none is torn");
	close_pair(p);
}

static void test_skip(struct pair *p)
{
	struct sending x;

	open_pair(p, 0);
	p->b.skip = 1;
	send_values(&p->a, 0, 1, VALUES, &x);
	settle(p, 0);
	ok(p->b.records == 1 && !p->b.disorder && x.sent,
		"data without a destination is skipped");
	p->b.c.config.data = (struct dl_limits){0, 0};
	send_values(&p->a, 0, 2, 1, &x);
	settle(p, 0);
	ok(p->b.over == DL_PROTOCOL && strstr(p->b.why.text, "allowed"),
		"data above the limit ends it: %s", p->b.why.text);
	close_pair(p);
}

/* Random messages and records both ways, through a socket of random size,
 * with each side working at random. */
static void test_random(struct pair *p)
{
	enum { MESSAGES = 10000, RECORDS = 300 };
	static struct sending x[2][RECORDS];
	struct dl_rng rng = {dl_rng_key(1, 2), 0};
	uint64_t left[2] = {MESSAGES / 2, MESSAGES / 2};
	uint64_t data[2] = {RECORDS, RECORDS};
	struct side *side[2] = {&p->a, &p->b};
	int i, wrong = 0;
	size_t k;

	open_pair(p, 4096);
	while (left[0] + left[1] + data[0] + data[1]) {
		i = (int)dl_rng_below(&rng, 2);
		if (dl_rng_below(&rng, 3) && left[i])
			pair_send_end(&side[i]->c, MESSAGES / 2 - --left[i]);
		if (!dl_rng_below(&rng, 8) && data[i]) {
			k = --data[i];
			send_values(side[i], dl_rng_below(&rng, 2), RECORDS - k,
				dl_rng_below(&rng, 3000), &x[i][k]);
		}
		if (!dl_rng_below(&rng, 4))
			work(side[dl_rng_below(&rng, 2)], 0);
	}
	settle(p, 0);
	ok(p->a.messages == MESSAGES / 2 && p->b.messages == MESSAGES / 2,
		"%d random messages arrive", MESSAGES);
	for (i = 0; i < 2; i++) {
		uint64_t sent = 0;

		for (k = 0; k < RECORDS; k++) {
			wrong += x[i][k].done != 1;
			sent += (uint64_t)x[i][k].sent;
		}
		ok(sent == side[!i]->records && sent > 0, "%llu records arrive",
			(unsigned long long)sent);
	}
	ok(!wrong, "every record is released once");
	ok(!p->a.disorder && !p->b.disorder && !p->a.over && !p->b.over,
		"in order, with the right values");
	ok(p->a.c.main.bytes_out == p->b.c.main.bytes_in &&
			p->b.c.main.bytes_out == p->a.c.main.bytes_in,
		"the counters agree");
	close_pair(p);
}

static void test_unread(struct pair *p)
{
	uint64_t i;

	open_pair(p, 4096);
	p->a.c.config.queue = 100000;
	for (i = 1; i < 100000 && !p->a.over; i++) {
		pair_send_end(&p->a.c, i);
		work(&p->a, 0);
	}
	ok(p->a.over == DL_TEMPFAIL && strstr(p->a.why.text, "does not read"),
		"a peer that never reads is dropped: %s", p->a.why.text);
	ok(p->a.c.control.cap < 400000, "its queue stays small");
	close_pair(p);
}

static void test_garbage(
	struct pair *p, const char *bytes, size_t n, const char *says)
{
	open_pair(p, 0);
	if (write(p->a.c.main.fd, bytes, n) != (ssize_t)n)
		abort();
	settle(p, 0);
	ok(p->b.over == DL_PROTOCOL && strstr(p->b.why.text, says) &&
			!p->b.messages,
		"garbage ends it: %s", p->b.why.text);
	ok(dl_conn_work(&p->b.c, POLLIN, 0, NULL) == DL_PROTOCOL,
		"and it stays over");
	close_pair(p);
}

/* A message on a channel that is not its own. */
static void test_channel(struct pair *p, enum dl_channel channel,
	const struct dl_message *m, const char *says)
{
	unsigned char head[DL_FRAME_HEAD];
	struct dl_buf b = DL_BUF_INIT;

	open_pair(p, 0);
	dl_message_pack(m, &b);
	dl_frame_head(head, channel, b.len);
	if (write(p->a.c.main.fd, head, sizeof(head)) < 0 ||
		write(p->a.c.main.fd, b.data, b.len) < 0)
		abort();
	settle(p, 0);
	ok(p->b.over == DL_PROTOCOL && strstr(p->b.why.text, says), "%s",
		p->b.why.text);
	dl_buf_free(&b);
	close_pair(p);
}

static void test_channels(struct pair *p)
{
	const struct dl_version v = {1, 0};
	const struct dl_message push = {
		.kind = DL_MSG_PUSH, .seq = 1, .codec = "x"};
	const struct dl_message want = {.kind = DL_MSG_WANT};
	const struct dl_message hello = {.kind = DL_MSG_HELLO,
		.name = "a",
		.fragments = 1,
		.versions = &v};

	test_channel(p, DL_CHANNEL_CONTROL, &push, "on the control channel");
	test_channel(p, DL_CHANNEL_DATA, &want, "on the data channel");
	test_channel(p, DL_CHANNEL_DATA, &hello, "without its data");
}

static void test_time(struct pair *p)
{
	int64_t s = DL_SECOND;

	open_pair(p, 0);
	p->a.c.config.beat_ns = 2 * s;
	p->b.c.config.silence_ns = 5 * s;
	ok(dl_conn_deadline(&p->a.c) == 2 * s &&
			dl_conn_deadline(&p->b.c) == 5 * s,
		"deadlines are those of beat and silence");
	settle(p, 2 * s - 1);
	ok(p->b.c.main.bytes_in == 0, "no heartbeat before it is due");
	settle(p, 2 * s);
	ok(p->b.c.main.bytes_in == DL_FRAME_HEAD &&
			p->b.c.main.heard == 2 * s && !p->b.messages,
		"a heartbeat is an empty frame");
	settle(p, 3 * s);
	pair_send_end(&p->a.c, 1);
	settle(p, 3 * s);
	ok(dl_conn_deadline(&p->a.c) == 5 * s, "any byte sent is a beat");
	work(&p->b, 7 * s);
	ok(!p->b.over && dl_conn_deadline(&p->b.c) == 8 * s,
		"any byte received is life");
	pair_send_end(&p->a.c, 2);
	work(&p->a, 4 * s);
	p->b.over = dl_conn_work(&p->b.c, 0, 9 * s, &p->b.why);
	ok(!p->b.over && p->b.last == 2,
		"so are bytes that wait while we are busy");
	work(&p->b, 14 * s);
	ok(p->b.over == DL_UNAVAILABLE && strstr(p->b.why.text, "silent for"),
		"the silent are dropped: %s", p->b.why.text);
	close_pair(p);
}

static void test_end(struct pair *p)
{
	struct dl_message bye = {.kind = DL_MSG_ERROR,
		.code = DL_NOPERM,
		.text = "name is taken"};
	struct sending x;

	/* The last words arrive before the end, whatever else was sent. */
	open_pair(p, 4096);
	send_values(&p->a, 0, 1, VALUES, &x);
	dl_conn_send(&p->a.c, &bye);
	dl_conn_finish(&p->a.c, 10);
	pair_send_end(&p->a.c, 1);
	settle(p, 1);
	ok(p->b.messages == 1 && strcmp(p->b.text, "name is taken") == 0 &&
			p->b.records == 1,
		"finishing writes what waits, and takes no more");
	ok(p->b.over == DL_UNAVAILABLE && strcmp(p->b.why.text, "closed") == 0,
		"then the peer sees the end");
	ok(!p->a.over && dl_conn_deadline(&p->a.c) == 10,
		"which is waited for");
	work(&p->a, 10);
	ok(p->a.over == DL_UNAVAILABLE, "until the deadline");
	close_pair(p);

	open_pair(p, 0);
	p->b.finish = 1;
	pair_send_end(&p->a.c, 1);
	pair_send_end(&p->a.c, 2);
	settle(p, 0);
	ok(p->b.messages == 1 && p->b.last == 1 && p->a.over && !p->b.over,
		"what comes after is passed over");
	dl_conn_release(&p->a.c);
	settle(p, 0);
	ok(p->b.over && strcmp(p->b.why.text, "finished") == 0,
		"the peer's end finishes it");
	close_pair(p);

	open_pair(p, 0);
	p->b.refuse = 1;
	pair_send_end(&p->a.c, 1);
	settle(p, 0);
	ok(p->b.over == DL_NOPERM && strcmp(p->b.why.text, "not you") == 0,
		"a handler's refusal ends it");
	close_pair(p);
}

/* The peer goes in the middle, at any byte. */
static void test_cut(struct pair *p)
{
	struct sending x;
	size_t n, wrong = 0, tries = 0;

	for (n = 0; n < 600; n++) {
		unsigned char bytes[600];
		ssize_t got;

		open_pair(p, 0);
		pair_send_end(&p->a.c, 1);
		send_values(&p->a, 0, 1, 40, &x);
		work(&p->a, 0);
		got = recv(p->b.c.main.fd, bytes, sizeof(bytes), 0);
		if (got < (ssize_t)n) {
			close_pair(p);
			break;
		}
		if (send(p->a.c.main.fd, bytes, n, 0) != (ssize_t)n)
			wrong++;
		dl_conn_release(&p->a.c);
		p->a.over = 1;
		settle(p, 0);
		wrong += p->b.over != DL_UNAVAILABLE ||
			 strncmp(p->b.why.text, "closed", 6) != 0;
		wrong += p->b.messages > 1 || p->b.records > 1;
		tries++;
		close_pair(p);
	}
	ok(!wrong && tries > 200, "an end at any byte is an end (%zu tries)",
		tries);

	/* Writing to one that has gone tells its last words. */
	open_pair(p, 0);
	pair_send_end(&p->b.c, 1);
	work(&p->b, 0);
	dl_conn_release(&p->b.c);
	pair_send_end(&p->a.c, 1);
	p->a.over = dl_conn_work(&p->a.c, POLLOUT, 0, &p->a.why);
	ok(p->a.over == DL_UNAVAILABLE && p->a.messages == 1,
		"the last words of one that has gone are heard: %s",
		p->a.why.text);
	close_pair(p);
}

static void test_both_kinds(struct pair *p)
{
	test_overtake(p);
	test_replace(p);
	test_smallest_first(p);
	test_skip(p);
	test_random(p);
	test_unread(p);
	test_end(p);
	test_cut(p);
}

int main(void)
{
	static struct pair p;

	if (sodium_init() < 0)
		return 99;
	dl_key_make(&learner_key);
	dl_key_make(&syncer_key);
	test_both_kinds(&p);
	test_garbage(&p, "GET / HTTP/1.1\r\n", 16, "channel 84");
	test_garbage(&p, "\0\0\0", 3, "without a channel");
	test_garbage(
		&p, "\x0a\0\0\xff\xff\xff\xff\xff\xff\xff\xff!", 12, "allowed");
	test_garbage(&p, "\x0b\0\0\2\0\0\0\0\0\0\0{}", 13, "dl.format");
	test_garbage(&p, "\x0b\0\0\2\0\0\0\0\0\0\0[]", 13, "");
	test_channels(&p);
	test_time(&p);
	sealed = 1;
	test_both_kinds(&p);
	return done_testing();
}
