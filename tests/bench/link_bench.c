/*
 * How fast a record goes over a connection on loopback tcp, plain and in a
 * session, beside what bounds it in the same run: the raw socket's speed r, and
 * for a session 1/(1/c + 1/r), c the speed of the slower of sealing and opening
 * frames. GB/s, medians of rounds in which each has one turn. The congestion
 * control is the system's, or that of the first argument. Not a test; `make
 * bench` runs it.
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
#include "link/conn.h"
#include "link/tcp.h"

enum { ROUNDS = 9, RECORDS = 4, RECORD = 32 << 20, WRITE = 1 << 20 };
static const double bytes = (double)RECORDS * RECORD;

static struct dl_tcp tcp;
static unsigned char *from, *to; /* RECORD bytes each */
static struct dl_key own[2];
static const struct dl_handshake_config client = {&own[0], own[1].public, ""};
static const struct dl_handshake_config server = {&own[1], NULL, "bench"};

static void need(int fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "link_bench: %s\n", what);
	exit(99);
}

static int tcp_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct dl_err e;

	need(!dl_tcp_apply(&tcp, fd, &e), e.text);
	return fd;
}

/* Two ends of a connection, set up as links are. */
static void tcp_pair(int fd[2], int flags)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof a;
	int listener = tcp_socket();

	need(!bind(listener, (struct sockaddr *)&a, n) &&
			!listen(listener, 1) &&
			!getsockname(listener, (struct sockaddr *)&a, &n),
		"listen");
	fd[0] = tcp_socket();
	need(!connect(fd[0], (struct sockaddr *)&a, n), "connect");
	fd[1] = accept(listener, NULL, NULL);
	need(fd[1] >= 0, "accept");
	close(listener);
	for (int i = 0; i < 2; i++)
		need(!fcntl(fd[i], F_SETFL, flags), "fcntl");
}

static void *raw_receiver(void *ctx)
{
	const int *fd = ctx;

	for (int i = 0; i < RECORDS; i++)
		need(dl_read_full(*fd, to, RECORD) == RECORD, "read");
	need(!dl_write_full(*fd, "", 1), "write");
	return NULL;
}

/* Large writes from the same memory, large reads into the same memory. */
static double raw(void)
{
	unsigned lowat = UINT32_MAX; /* what the system has by itself */
	pthread_t receiver;
	int64_t start;
	double took;
	char done;
	int fd[2];

	tcp_pair(fd, 0);
	setsockopt(fd[0], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
	pthread_create(&receiver, NULL, raw_receiver, &fd[1]);
	start = dl_now();
	for (size_t i = 0; i < RECORDS * (size_t)RECORD; i += WRITE)
		need(!dl_write_full(fd[0], from + i % RECORD, WRITE), "write");
	need(dl_read_full(fd[0], &done, 1) == 1, "read");
	took = (double)(dl_now() - start);
	pthread_join(receiver, NULL);
	close(fd[0]);
	close(fd[1]);
	return bytes / took;
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

		need(poll(&p, 1, 5000) > 0, "poll");
		if (dl_conn_work(&x->c, p.revents, dl_now(), &e)) {
			need(x->records == RECORDS, e.text);
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

static double conn(int sealed)
{
	struct end a, b;
	pthread_t thread;
	int64_t start;
	double took;
	int fd[2];

	tcp_pair(fd, O_NONBLOCK);
	open_end(&a, fd[0], sealed ? &client : NULL);
	open_end(&b, fd[1], sealed ? &server : NULL);
	pthread_create(&thread, NULL, receiver, &b);
	work(&a, 1);
	for (int i = 0; i < RECORDS; i++)
		queue_record(&a);
	start = dl_now();
	work(&a, 2);
	took = (double)(dl_now() - start);
	dl_conn_release(&a.c);
	pthread_join(thread, NULL);
	dl_conn_release(&b.c);
	return bytes / took;
}

/* Of full frames in place, in memory that is not in the cache. */
static double cipher(enum dl_suite suite)
{
	enum { FRAME = DL_FRAME_PAYLOAD + 1, SEALED = FRAME + DL_CIPHER_TAG };
	struct dl_cipher c;
	size_t n = RECORD / SEALED;
	double took[2] = {0};

	dl_cipher_init(&c, suite, own[0].secret);
	for (int open = 0; open < 2; open++) {
		int64_t start = dl_now();

		c.next = 0;
		for (size_t i = 0; i < n; i++) {
			unsigned char *p = to + i * SEALED;

			need(!(open ? dl_cipher_open(
					      &c, p, p, SEALED, NULL, 0, NULL)
				    : dl_cipher_seal(
					      &c, p, p, FRAME, NULL, 0, NULL)),
				"cipher");
		}
		took[open] = (double)(dl_now() - start);
	}
	return (double)n * FRAME / (took[0] > took[1] ? took[0] : took[1]);
}

static int rising(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof *v, rising);
	return v[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	enum dl_suite suite;
	double r[ROUNDS], plain[ROUNDS], sealed[ROUNDS], c[ROUNDS],
		of_raw[ROUNDS], of_both[ROUNDS];
	char name[16] = "?";
	socklen_t n = sizeof name - 1;

	if (sodium_init() < 0)
		return 99;
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
	for (int i = 0; i < ROUNDS; i++) {
		r[i] = raw();
		plain[i] = conn(0);
		sealed[i] = conn(1);
		c[i] = cipher(suite);
		of_raw[i] = plain[i] / r[i];
		of_both[i] = sealed[i] * (1 / c[i] + 1 / r[i]);
	}
	printf("loopback tcp, %s: raw %.2f GB/s; plain %.2f, %.2f of raw\n",
		name, median(r), median(plain), median(of_raw));
	printf("%s: frames %.2f GB/s; session %.2f, %.2f of 1/(1/c + 1/r)\n",
		dl_suite_name(suite), median(c), median(sealed),
		median(of_both));
	dl_big_free(from, RECORD);
	dl_big_free(to, RECORD);
	return 0;
}
