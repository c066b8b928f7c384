/*
 * Two connections whose data is striped over socket pairs, worked by hand:
 * streams come and go, and what is received is what an unstriped connection
 * receives.
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

enum { STREAMS = 4, RECORDS = 40, VALUES = 300000, SMALL_BUFFER = 8192 };

struct side {
	struct dl_conn c;
	struct dl_err why;
	int over;
	uint64_t messages, records, wrong, released, lost;
	uint64_t last_seq;
	float dest[VALUES];
	size_t dest_n;
};

struct pair {
	struct side a, b;
	struct dl_rng rng;
	int64_t now;
	int fd[2 * DL_STREAMS_MAX]; /* of extra streams: a's at even places */
};

static int got_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct side *s = ctx;

	(void)c;
	(void)m;
	(void)e;
	s->messages++;
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
	*dest = s->dest;
	return 0;
}

static int whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct side *s = ctx;

	(void)c;
	(void)h;
	(void)dest;
	(void)e;
	s->wrong += pair_wrong(s->dest, s->dest_n, m->seq);
	s->wrong += m->seq != s->last_seq + 1;
	s->last_seq = m->seq;
	s->records++;
	return 0;
}

static const struct dl_conn_handlers handlers = {got_message, begin, whole};

static struct dl_conn_config config(void *ctx)
{
	return (struct dl_conn_config){
		.handlers = &handlers,
		.ctx = ctx,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_FILE,
		.queue = DL_CONN_QUEUE,
		.silence_ns = 10 * DL_SECOND,
		.beat_ns = 2 * DL_SECOND,
	};
}

static void open_pair(struct pair *p, uint64_t seed)
{
	struct dl_conn_config a = config(&p->a), b = config(&p->b);
	int fd[2];

	memset(p, 0, sizeof(*p));
	p->rng = (struct dl_rng){seed, 0};
	memset(p->fd, -1, sizeof(p->fd));
	pair_sockets(fd, SMALL_BUFFER);
	dl_conn_init(&p->a.c, fd[0], &a, 0);
	dl_conn_init(&p->b.c, fd[1], &b, 0);
	dl_conn_stripe(&p->a.c, STREAMS, DL_WINDOW_MIN);
	dl_conn_stripe(&p->b.c, STREAMS, DL_WINDOW_MIN);
}

static void close_pair(struct pair *p)
{
	dl_conn_release(&p->a.c);
	dl_conn_release(&p->b.c);
}

static void adopt(struct side *s, int fd, int64_t now)
{
	struct dl_conn_config cf = config(s);
	struct dl_conn offered;

	dl_conn_init(&offered, fd, &cf, now);
	dl_conn_offer(&offered);
	if (!dl_conn_offered(&offered))
		abort();
	dl_conn_adopt(&s->c, &offered, now);
}

/* As many extra streams as there may be. */
static void add_streams(struct pair *p)
{
	int i;

	while (dl_conn_missing(&p->a.c) && dl_conn_missing(&p->b.c)) {
		for (i = 0; p->fd[i] >= 0; i += 2)
			continue;
		pair_sockets(p->fd + i, SMALL_BUFFER);
		adopt(&p->a, p->fd[i], p->now);
		adopt(&p->b, p->fd[i + 1], p->now);
	}
}

static void turn(struct pair *p, struct side *s, int fd)
{
	if (!s->over && fd >= 0)
		s->over = dl_conn_turn(
			&s->c, fd, POLLIN | POLLOUT, p->now, &s->why);
}

/* One of the extra streams is cut. */
static void cut_stream(struct pair *p)
{
	int i = 2 * (int)dl_rng_below(&p->rng, STREAMS - 1);

	if (p->fd[i] < 0)
		return;
	shutdown(p->fd[i], SHUT_RDWR);
	turn(p, &p->a, p->fd[i]);
	turn(p, &p->b, p->fd[i + 1]);
	p->fd[i] = p->fd[i + 1] = -1;
}

/* Sockets are ready in any order. */
static void work(struct pair *p)
{
	int i = (int)dl_rng_below(&p->rng, STREAMS), other;

	other = i ? p->fd[2 * i - 1] : p->b.c.main.fd;
	turn(p, &p->a, i ? p->fd[2 * i - 2] : p->a.c.main.fd);
	turn(p, &p->b, other);
}

static void released(void *ctx, int sent)
{
	struct side *s = ctx;

	s->released += sent;
	s->lost += !sent;
}

static float *all_values; /* of RECORDS records */

/* Queues the record of that seq: the sizes vary, from one element on. */
static void push(struct side *s, uint64_t seq, size_t n)
{
	pair_send_values(&s->c, seq, seq, all_values + (seq - 1) * VALUES, n,
		released, s);
}

static size_t size_of(uint64_t seq)
{
	return seq % 3 ? 1 + seq * 37 : VALUES - seq;
}

/* All records cross while streams are cut at every `cut`-th turn and made
 * again. */
static void test_transfer(struct pair *p, uint64_t cut, uint64_t seed)
{
	uint64_t seq, k, cuts = 0;

	open_pair(p, seed);
	for (seq = 1; seq <= RECORDS; seq++)
		push(&p->a, seq, size_of(seq));
	for (k = 0; k < 200000 && p->a.released < RECORDS; k++) {
		if (cut && dl_rng_below(&p->rng, cut) == 0) {
			cut_stream(p);
			cuts++;
		}
		if (dl_rng_below(&p->rng, 20) == 0)
			add_streams(p);
		if (k % 1000 == 0)
			pair_send_end(&p->a.c, k);
		work(p);
	}
	ok(p->b.records == RECORDS && !p->b.wrong && !p->a.over && !p->b.over,
		"all records, bit for bit and in order, over %llu cuts %s%s",
		(unsigned long long)cuts, p->a.why.text, p->b.why.text);
	ok(p->a.released == RECORDS && !p->a.lost && !dl_conn_waiting(&p->a.c),
		"each is released once it has been received");
	ok(p->b.messages > 0, "with %llu messages between",
		(unsigned long long)p->b.messages);
	close_pair(p);
}

/* Everything that can go without the other side reading goes. */
static void fill(struct pair *p)
{
	int i;

	for (i = 0; i < 1000; i++) {
		turn(p, &p->a, p->a.c.main.fd);
		turn(p, &p->a, p->fd[2 * (i % (STREAMS - 1))]);
	}
}

static void settle(struct pair *p)
{
	int i;

	for (i = 0; i < 4000; i++)
		work(p);
}

static void test_control(struct pair *p)
{
	open_pair(p, 1);
	add_streams(p);
	push(&p->a, 1, VALUES);
	fill(p);
	pair_send_end(&p->a.c, 1);
	while (!p->b.messages && !p->b.over)
		work(p);
	ok(!p->b.records && p->a.c.stripes->out.given < VALUES * sizeof(float),
		"control overtakes pieces");
	settle(p);
	ok(p->b.records == 1 && !p->b.wrong, "which come whole");
	close_pair(p);
}

/* The last words wait for what is under way, over a lost stream too. */
static void test_finish(struct pair *p)
{
	open_pair(p, 2);
	add_streams(p);
	push(&p->a, 1, VALUES);
	fill(p);
	cut_stream(p);
	dl_conn_finish(&p->a.c, DL_SECOND);
	settle(p);
	ok(p->b.records == 1 && !p->b.wrong && p->b.over == DL_UNAVAILABLE,
		"what was queued has come before the end: %s", p->b.why.text);
	close_pair(p);
}

/* Frames of ours to b's main stream. */
static void test_hostile(
	struct pair *p, const char *what, const void *bytes, size_t n, int lost)
{
	int fd[2], i;

	open_pair(p, 3);
	add_streams(p);
	memcpy(fd, (int[]){p->a.c.main.fd, p->fd[0]}, sizeof(fd));
	for (i = 0; i < 2; i++)
		if (write(fd[i], bytes, n) != (ssize_t)n)
			abort();
	turn(p, &p->b, p->fd[1]);
	if (lost)
		ok(!p->b.over && dl_conn_missing(&p->b.c) == 1,
			"%s: an extra stream is lost", what);
	else
		ok(p->b.over == DL_PROTOCOL, "%s: %s", what, p->b.why.text);
	if (!p->b.over)
		turn(p, &p->b, p->b.c.main.fd);
	ok(p->b.over == DL_PROTOCOL && !p->b.c.stripes->in.ring,
		"%s on main: %s", what, p->b.why.text);
	close_pair(p);
}

static void test_unagreed(void)
{
	static const unsigned char piece[] = {
		10, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 'x'};
	struct side s = {0};
	struct dl_conn_config cf = config(&s);
	int fd[2];

	pair_sockets(fd, SMALL_BUFFER);
	dl_conn_init(&s.c, fd[0], &cf, 0);
	if (write(fd[1], piece, sizeof(piece)) != sizeof(piece))
		abort();
	ok(dl_conn_work(&s.c, POLLIN, 0, &s.why) == DL_PROTOCOL, "%s",
		s.why.text);
	dl_conn_release(&s.c);
	close(fd[1]);
}

/* An extra stream that is silent is lost, the others go on; those that beat
 * are not. */
static void test_silence(struct pair *p)
{
	int i, k;

	open_pair(p, 4);
	add_streams(p);
	push(&p->a, 1, VALUES);
	fill(p);
	for (i = 0; i < 12; i++) {
		p->now += DL_SECOND;
		for (k = 0; k < 1000; k++)
			work(p);
	}
	ok(!p->a.over && !p->b.over && dl_conn_missing(&p->a.c) == 0 &&
			p->b.records == 1,
		"beats keep streams alive, and what is there is read");
	p->b.c.config.beat_ns = 0;
	for (i = 0; i < 12; i++) {
		p->now += DL_SECOND;
		p->a.c.main.heard = p->now;
		turn(p, &p->a, p->a.c.main.fd);
	}
	ok(!p->a.over && dl_conn_missing(&p->a.c) == STREAMS - 1,
		"silent ones are lost, and only they");
	close_pair(p);
}

static void open_either(struct pair *p, int striped)
{
	struct dl_conn_config a = config(&p->a), b = config(&p->b);
	int fd[2];

	open_pair(p, 5);
	p->now = DL_SECOND;
	if (striped)
		return;
	close_pair(p);
	pair_sockets(fd, SMALL_BUFFER);
	dl_conn_init(&p->a.c, fd[0], &a, 0);
	dl_conn_init(&p->b.c, fd[1], &b, 0);
}

/* A peer that sends more than it may is read slower, and counts as alive. */
static void test_reads(struct pair *p, int striped)
{
	struct dl_rate rate = {.bytes = 100000};
	int64_t whole_at;
	uint64_t had;

	open_either(p, striped);
	p->b.c.config.reads = &rate;
	p->b.c.config.silence_ns = DL_SECOND / 5;
	push(&p->a, 1, VALUES);
	for (; p->now < 6 * DL_SECOND; p->now += DL_SECOND / 100) {
		turn(p, &p->a, p->a.c.main.fd);
		turn(p, &p->b, p->b.c.main.fd);
	}
	had = dl_conn_bytes_in(&p->b.c);
	ok(!p->b.over && had > 450000 && had < 505000 + 7000,
		"%s: %llu bytes are read in 5 s", striped ? "striped" : "plain",
		(unsigned long long)had);
	turn(p, &p->b, p->b.c.main.fd);
	ok(!(dl_conn_events(&p->b.c) & POLLIN) &&
			dl_conn_deadline(&p->b.c) == dl_rate_next(&rate),
		"it waits for the time, not for the socket");
	for (; !p->b.records && p->now < 20 * DL_SECOND;
		p->now += DL_SECOND / 100) {
		turn(p, &p->a, p->a.c.main.fd);
		turn(p, &p->b, p->b.c.main.fd);
	}
	whole_at = p->now;
	ok(p->b.records == 1 && !p->b.wrong && whole_at > 12 * DL_SECOND &&
			whole_at < 14 * DL_SECOND,
		"and has all of it in the end");
	close_pair(p);
}

/* In five seconds of invented time no more goes than the rate, the burst and
 * one frame; messages go at once. */
static void test_rate(struct pair *p, int striped)
{
	struct dl_rate rate = {.bytes = 100000};
	uint64_t had;

	open_either(p, striped);
	p->a.c.config.rate = &rate;
	push(&p->a, 1, VALUES);
	for (; p->now < 6 * DL_SECOND; p->now += DL_SECOND / 100) {
		turn(p, &p->a, p->a.c.main.fd);
		turn(p, &p->b, p->b.c.main.fd);
	}
	had = dl_conn_bytes_in(&p->b.c);
	ok(had > 450000 && had < 505000 + 70000, "%s: %llu bytes in 5 s",
		striped ? "striped" : "plain", (unsigned long long)had);
	ok(dl_conn_deadline(&p->a.c) > p->now - DL_SECOND / 100 &&
			!(dl_conn_events(&p->a.c) & POLLOUT),
		"it waits for the time, not for the socket");
	pair_send_end(&p->a.c, 1);
	turn(p, &p->a, p->a.c.main.fd);
	turn(p, &p->b, p->b.c.main.fd);
	ok(p->b.messages == 1, "a message does not wait");
	close_pair(p);
}

int main(void)
{
	static const unsigned char far[] = {
		10, 0, 2, 0, 0, 0, 0, 0, 0, 0, 128, 'x'};
	static const unsigned char bare[] = {8, 0, 2, 0, 0, 0, 0, 0, 0, 0};
	static const unsigned char data[] = {2, 0, 1, 'x'};
	static struct pair p;

	all_values = dl_alloc_array((size_t)RECORDS * VALUES, sizeof(float));
	test_transfer(&p, 0, 1);
	test_transfer(&p, 100, 2);
	test_transfer(&p, 20, 3);
	test_control(&p);
	test_finish(&p);
	test_silence(&p);
	test_rate(&p, 0);
	test_rate(&p, 1);
	test_reads(&p, 0);
	test_reads(&p, 1);
	test_hostile(&p, "an offset of 2^63", far, sizeof(far), 0);
	test_hostile(&p, "half an offset", bare, sizeof(bare), 0);
	test_hostile(&p, "plain data", data, sizeof(data), 1);
	test_unagreed();
	free(all_values);
	return done_testing();
}
