/*
 * How fast records go over a connection on loopback tcp, plain and in a
 * session, beside what bounds it: the raw socket's time, and for a session that
 * and the slower of sealing and opening frames, one after the other. The
 * congestion control is the system's, or that of the first argument.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "bench.h"
#include "link/conn.h"
#include "link/tcp.h"

enum { TURNS = 9, RECORDS = 4, RECORD = 32 << 20, WRITE = 1 << 20 };
static const double bytes = (double)RECORDS * RECORD;

static struct dl_tcp tcp;
static unsigned char *from, *to; /* RECORD bytes each */
static struct dl_key own[2];
static const struct dl_handshake_config client = {&own[0], own[1].public, ""};
static const struct dl_handshake_config server = {&own[1], NULL, "bench"};

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct dl_err e;

	bench_need(!dl_tcp_apply(&tcp, fd, &e), e.text);
	return fd;
}

/* Two ends of a connection, set up as links are. */
static void tcp_pair(int fd[2], int flags)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int listener = tcp_socket();

	bench_need(!bind(listener, (struct sockaddr *)&a, n) &&
			   !listen(listener, 1) &&
			   !getsockname(listener, (struct sockaddr *)&a, &n),
		"listen");
	fd[0] = tcp_socket();
	bench_need(!connect(fd[0], (struct sockaddr *)&a, n), "connect");
	fd[1] = accept(listener, NULL, NULL);
	bench_need(fd[1] >= 0, "accept");
	close(listener);
	for (int i = 0; i < 2; i++)
		bench_need(!fcntl(fd[i], F_SETFL, flags), "fcntl");
}

static void *raw_receiver(void *ctx)
{
	const int *fd = ctx;

	for (int i = 0; i < RECORDS; i++)
		bench_need(dl_read_full(*fd, to, RECORD) == RECORD, "read");
	bench_need(!dl_write_full(*fd, "", 1), "write");
	return NULL;
}

/* Large writes from the same memory, large reads into the same memory. */
static double raw_seconds(void)
{
	unsigned lowat = UINT32_MAX; /* what the system has by itself */
	pthread_t receiver;
	double start, took;
	char done;
	int fd[2];

	tcp_pair(fd, 0);
	setsockopt(fd[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
	pthread_create(&receiver, NULL, raw_receiver, &fd[1]);
	start = bench_now();
	for (size_t i = 0; i < RECORDS * (size_t)RECORD; i += WRITE)
		bench_need(!dl_write_full(fd[0], from + i % RECORD, WRITE),
			"write");
	bench_need(dl_read_full(fd[0], &done, 1) == 1, "read");
	took = bench_now() - start;
	pthread_join(receiver, NULL);
	close(fd[0]);
	close(fd[1]);
	return took;
}

/* One end of a connection. */
struct end {
	struct dl_conn c;
	int messages, records;
};

static void tell(struct dl_conn *c)
{
	const struct dl_message m = {.kind = DL_MSG_END};

	dl_conn_send(c, &m);
}

static int got_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct end *x = ctx;

	(void)c;
	(void)m;
	(void)e;
	x->messages++;
	return 0;
}

static int begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)m;
	*dest = to;
	return h->data_size == RECORD ? 0 : dl_fail(e, DL_DATA, "size");
}

static int whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct end *x = ctx;

	(void)m;
	(void)h;
	(void)dest;
	(void)e;
	if (++x->records == RECORDS)
		tell(c);
	return 0;
}

static void open_end(
	struct end *x, int fd, const struct dl_handshake_config *session)
{
	static const struct dl_conn_handlers handlers = {
		got_message, begin, whole};
	const struct dl_conn_config cf = {.handlers = &handlers,
		.ctx = x,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_FILE,
		.queue = DL_CONN_QUEUE,
		.session = session};

	memset(x, 0, sizeof *x);
	dl_conn_init(&x->c, fd, &cf, dl_now());
}

/* Works until so many messages have come, or the other end has closed. */
static void work(struct end *x, int messages)
{
	struct dl_err e;

	while (x->messages < messages) {
		struct pollfd p = {x->c.main.fd, dl_conn_events(&x->c), 0};

		bench_need(poll(&p, 1, 5000) > 0, "poll");
		if (dl_conn_work(&x->c, p.revents, dl_now(), &e)) {
			bench_need(x->records == RECORDS, e.text);
			return;
		}
	}
}

static void *receiver(void *ctx)
{
	struct end *x = ctx;

	tell(&x->c); /* the handshake is done */
	work(x, 1);
	return NULL;
}

static void queue_record(struct end *x)
{
	const struct dl_message m = {.kind = DL_MSG_PUSH,
		.seq = 1,
		.steps = 1,
		.tokens = 1,
		.codec = "f32"};
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;
	uint64_t shape = RECORD / sizeof(float);

	dl_message_meta(&m, &w);
	dl_writer_tensor(&w, "x", 1, DL_F32, 1, &shape);
	dl_writer_finish(&w, &head, NULL);
	dl_writer_release(&w);
	dl_conn_send_data(&x->c, 0, &head, from, RECORD, NULL, NULL);
}

static double conn_seconds(int sealed)
{
	struct end a, b;
	pthread_t thread;
	double start, took;
	int fd[2];

	tcp_pair(fd, O_NONBLOCK);
	open_end(&a, fd[0], sealed ? &client : NULL);
	open_end(&b, fd[1], sealed ? &server : NULL);
	pthread_create(&thread, NULL, receiver, &b);
	work(&a, 1);
	for (int i = 0; i < RECORDS; i++)
		queue_record(&a);
	start = bench_now();
	work(&a, 2);
	took = bench_now() - start;
	dl_conn_release(&a.c);
	pthread_join(thread, NULL);
	dl_conn_release(&b.c);
	return took;
}

/* Of full frames in place, in memory that is not in the cache. */
static double cipher_seconds(enum dl_suite suite)
{
	enum { FRAME = DL_FRAME_PAYLOAD + 1, SEALED = FRAME + DL_CIPHER_TAG };
	struct dl_cipher c;
	size_t n = RECORD / SEALED;
	double took[2] = {0};

	dl_cipher_init(&c, suite, own[0].secret);
	for (int open = 0; open < 2; open++) {
		double start = bench_now();

		c.next = 0;
		for (size_t i = 0; i < n; i++) {
			unsigned char *p = to + i * SEALED;

			bench_need(!(open ? dl_cipher_open(&c, p, p, SEALED,
						    NULL, 0, NULL)
					  : dl_cipher_seal(&c, p, p, FRAME,
						    NULL, 0, NULL)),
				"cipher");
		}
		took[open] = bench_now() - start;
	}
	return bytes / ((double)n * FRAME) *
	       (took[0] > took[1] ? took[0] : took[1]);
}

static void raw(void *ctx)
{
	(void)ctx;
	bench_took(raw_seconds());
}

static void plain(void *ctx)
{
	(void)ctx;
	bench_took(conn_seconds(0));
}

static void sealed(void *ctx)
{
	(void)ctx;
	bench_took(conn_seconds(1));
}

static void raw_and_cipher(void *ctx)
{
	const enum dl_suite *suite = ctx;

	bench_took(raw_seconds() + cipher_seconds(*suite));
}

int main(int argc, char **argv)
{
	const struct bench b = {
		.unit = "GB/s", .amount = bytes * 1e-9, .turns = TURNS};
	enum dl_suite suite;
	char name[16] = "?";
	socklen_t n = sizeof name - 1;

	bench_need(sodium_init() >= 0, "libsodium");
	tcp.congestion = argc > 1 ? argv[1] : NULL;
	getsockopt(tcp_socket(), IPPROTO_TCP, TCP_CONGESTION, name, &n);
	suite = dl_suite_available(DL_SUITE_AESGCM) ? DL_SUITE_AESGCM
						    : DL_SUITE_CHACHAPOLY;
	from = dl_big_alloc(RECORD);
	to = dl_big_alloc(RECORD);
	memset(from, 1, RECORD);
	memset(to, 1, RECORD);
	dl_key_make(&own[0]);
	dl_key_make(&own[1]);
	bench_compare(&b, plain, raw, NULL, "link, plain, tcp %s", name);
	bench_compare(&b, sealed, raw_and_cipher, &suite, "link, %s, tcp %s",
		dl_suite_name(suite), name);
	dl_big_free(from, RECORD);
	dl_big_free(to, RECORD);
	return 0;
}
