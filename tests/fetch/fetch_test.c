/* A file in pieces over a socket pair: who gives it, and who takes it. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "cmd/fetch/give.h"
#include "cmd/fetch/take.h"
#include "tests/tap.h"

enum { SIZE = 5 * DL_FETCH_BYTES / 2 + 7 };

struct side {
	struct dl_conn conn;
	struct give *give; /* of the one that gives */
	struct take *take; /* of the one that takes */
	int over;
	struct dl_err why;
	unsigned parts;
};

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct side *s = ctx;

	(void)c;
	return m->kind == DL_MSG_FETCH && s->give ? give_fetch(s->give, m, e)
						  : 0;
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct side *s = ctx;

	(void)c;
	return s->take ? take_begin(s->take, m, h, dest, e) : 0;
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct side *s = ctx;

	(void)h;
	(void)dest;
	s->parts++;
	return s->take ? take_part(s->take, c, m, e) : 0;
}

static const struct dl_conn_handlers handlers = {
	on_message, on_begin, on_whole};

static struct dl_loop loop;
static struct dl_errands *errands;
static unsigned char *bytes; /* SIZE of them */
static int file;	     /* that holds them */

static int scratch(void)
{
	char path[] = "fetch.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || unlink(path))
		abort();
	return fd;
}

static void turn(void *ctx, int fd, short revents)
{
	struct side *s = ctx;

	if (!s->over)
		s->over =
			dl_conn_turn(&s->conn, fd, revents, dl_now(), &s->why);
}

static void open_side(struct side *s, int fd)
{
	struct dl_conn_config cf = {.handlers = &handlers,
		.ctx = s,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_FILE,
		.queue = DL_CONN_QUEUE};

	*s = (struct side){0};
	dl_conn_init(&s->conn, fd, &cf, dl_now());
}

static void open_pair(struct side *giver, struct side *taker)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	open_side(giver, fd[0]);
	open_side(taker, fd[1]);
}

static void close_side(struct side *s)
{
	give_free(s->give);
	s->give = NULL;
	if (s->over >= 0)
		dl_conn_release(&s->conn);
	s->over = -1;
}

static void work(struct side *s)
{
	turn(s, -1, 0);
	if (!s->over)
		dl_conn_watch(&s->conn, &loop, turn, s);
	else
		dl_loop_remove(&loop, s->conn.main.fd);
}

/* Both go on until that many ranges of taker's are whole, or one is over. */
static void run(struct side *giver, struct side *taker, size_t ranges)
{
	struct dl_err e;

	while (!giver->over && !taker->over &&
		!give_failed(giver->give, &giver->why) &&
		take_whole_ranges(taker->take) < ranges) {
		work(giver);
		work(taker);
		if (dl_loop_once(&loop, dl_now() + DL_SECOND / 5, &e))
			abort();
	}
}

static int same(int fd, uint64_t offset, size_t n)
{
	unsigned char *got = dl_alloc(n);
	int equal = dl_pread_full(fd, got, n, offset) == (ssize_t)n &&
		    memcmp(got, bytes + offset, n) == 0;

	free(got);
	return equal;
}

static void begin(struct side *giver, struct side *taker, struct take *t)
{
	struct dl_err e;

	open_pair(giver, taker);
	giver->give = give_new(&giver->conn, errands, file, SIZE, &e);
	taker->take = t;
}

static void test_whole(void)
{
	struct side giver, taker;
	struct take t;
	int fd = scratch();

	begin(&giver, &taker, &t);
	take_init(&t, fd);
	take_range(&t, 0, SIZE);
	take_ask(&t, &taker.conn);
	run(&giver, &taker, 1);
	ok(same(fd, 0, SIZE) && lseek(fd, 0, SEEK_END) == SIZE,
		"a whole file comes: %s%s", giver.why.text, taker.why.text);
	ok(taker.parts == 3, "in pieces of 4 MiB: %u", taker.parts);
	work(&giver);
	ok(give_sent(giver.give) == SIZE, "the giver knows that it is sent");
	close_side(&giver);
	close_side(&taker);
	take_release(&t);
	close(fd);
}

static void test_ranges(void)
{
	static const struct {
		uint64_t offset, n;
	} range[] = {{SIZE - 1, 1}, {0, 1}, {8, DL_FETCH_BYTES + 1}, {1, 3},
		{5, 1}, {4, 1}, {6, 2}, {100, 1}, {200, 1}, {300, 1}, {400, 1},
		{500, 1}, {5000000, 70000}};
	const size_t n = sizeof range / sizeof *range;
	struct side giver, taker;
	struct take t;
	size_t i, right = 0;
	int fd = scratch();

	begin(&giver, &taker, &t);
	take_init(&t, fd);
	for (i = 0; i < n; i++)
		take_range(&t, range[i].offset, range[i].n);
	take_ask(&t, &taker.conn);
	run(&giver, &taker, 3);
	ok(take_whole_ranges(&t) >= 3 && take_whole_ranges(&t) <= n,
		"ranges come in the order in which they are wanted");
	run(&giver, &taker, n);
	for (i = 0; i < n; i++)
		right += same(fd, range[i].offset, (size_t)range[i].n);
	ok(right == n, "%zu of %zu ranges are right: %s%s", right, n,
		giver.why.text, taker.why.text);
	take_range(&t, 3000000, 3);
	take_ask(&t, &taker.conn);
	run(&giver, &taker, n + 1);
	ok(same(fd, 3000000, 3), "one more, later");
	close_side(&giver);
	close_side(&taker);
	take_release(&t);
	close(fd);
}

/* One giver goes, another has the rest. */
static void test_resume(void)
{
	struct side giver, taker;
	struct take t;
	struct dl_err e;
	size_t had, i;
	int fd = scratch();

	begin(&giver, &taker, &t);
	take_init(&t, fd);
	for (i = 0; i < 10; i++)
		take_range(&t, i * 1000000, 1000000);
	take_ask(&t, &taker.conn);
	run(&giver, &taker, 4);
	close_side(&giver);
	while (!taker.over) {
		work(&taker);
		dl_loop_once(&loop, dl_now() + DL_SECOND, &e);
	}
	had = take_whole_ranges(&t);
	ok(taker.over == DL_UNAVAILABLE && had >= 4, "a giver goes: %s",
		taker.why.text);
	close_side(&taker);
	take_release(&t);
	begin(&giver, &taker, &t);
	take_init(&t, fd);
	for (i = had; i < 10; i++)
		take_range(&t, i * 1000000, 1000000);
	take_ask(&t, &taker.conn);
	run(&giver, &taker, 10 - had);
	ok(same(fd, 0, 10000000), "and the rest comes of another");
	close_side(&giver);
	close_side(&taker);
	take_release(&t);
	close(fd);
}

/* Asks by hand, and works until the giver has an answer to it. */
static int ask(uint64_t offset, uint64_t n, unsigned times, struct dl_err *e)
{
	struct dl_message m = {
		.kind = DL_MSG_FETCH, .offset = offset, .bytes = n};
	struct side giver, taker;
	int code;

	begin(&giver, &taker, NULL);
	for (unsigned i = 0; i < times; i++)
		dl_conn_send(&taker.conn, &m);
	turn(&taker, -1, 0);
	turn(&giver, giver.conn.main.fd, POLLIN);
	code = giver.over;
	*e = giver.why;
	close_side(&giver);
	close_side(&taker);
	return code;
}

static void test_asking(void)
{
	static const struct {
		uint64_t offset, n;
		unsigned times;
	} bad[] = {{SIZE, 1, 1}, {SIZE - 1, 2, 1}, {UINT64_MAX, 1, 1},
		{1, UINT64_MAX, 1}, {0, DL_FETCH_BYTES + 1, 1},
		{0, 1, DL_FETCHES + 1}};
	struct dl_err e;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ok(ask(bad[i].offset, bad[i].n, bad[i].times, &e) ==
				DL_PROTOCOL,
			"refused: %s", e.text);
	ok(!ask(SIZE - 1, 1, DL_FETCHES, &e), "the last byte, 8 times: yes");
}

/* A part by hand. */
static int answer(struct take *t, uint64_t offset, const void *data, size_t n,
	const char *hash, struct dl_err *e)
{
	struct dl_message m = {
		.kind = DL_MSG_PART, .offset = offset, .hash = hash};
	struct side giver, taker;
	struct dl_buf head = DL_BUF_INIT;
	int code;

	open_pair(&giver, &taker);
	taker.take = t;
	take_ask(t, &taker.conn);
	dl_message_pack_part(&m, n, &head);
	dl_conn_send_data(&giver.conn, 0, &head, data, n, NULL, NULL);
	turn(&giver, -1, 0);
	turn(&taker, taker.conn.main.fd, POLLIN);
	code = taker.over;
	*e = taker.why;
	close_side(&giver);
	close_side(&taker);
	return code;
}

static void test_answers(void)
{
	static const struct {
		const char *what;
		uint64_t offset;
		size_t n;
		int hashed; /* bytes that the hash is of */
		int want;   /* is there a range that was asked for? */
		int good;
	} table[] = {
		{"what was asked for", 10, 20, 20, 1, 1},
		{"another offset", 11, 20, 20, 1, 0},
		{"fewer bytes", 10, 19, 19, 1, 0},
		{"more bytes", 10, 21, 21, 1, 0},
		{"no bytes", 10, 0, 0, 1, 0},
		{"other bytes than its hash names", 10, 20, 19, 1, 0},
		{"what nobody asked for", 10, 20, 20, 0, 0},
	};

	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		char hex[DL_HASH_HEX];
		struct dl_hash hash;
		struct dl_err e = {0};
		struct take t;
		int fd = scratch(), code;

		dl_hash_init(&hash);
		dl_hash_add(&hash, bytes + 10, (size_t)table[i].hashed);
		dl_hash_hex(&hash, hex);
		take_init(&t, fd);
		if (table[i].want)
			take_range(&t, 10, 20);
		code = answer(
			&t, table[i].offset, bytes + 10, table[i].n, hex, &e);
		ok(table[i].good ? !code && take_whole_ranges(&t) == 1 &&
					   same(fd, 10, 20)
				 : code == DL_PROTOCOL &&
					   !take_whole_ranges(&t) &&
					   !lseek(fd, 0, SEEK_END),
			"%s: %s", table[i].what, e.text);
		take_release(&t);
		close(fd);
	}
}

static void test_full(void)
{
	char hex[DL_HASH_HEX];
	struct dl_hash hash;
	struct dl_err e = {0};
	struct take t;
	int fd = open("/dev/full", O_WRONLY);

	dl_hash_init(&hash);
	dl_hash_add(&hash, bytes, 20);
	dl_hash_hex(&hash, hex);
	take_init(&t, fd);
	take_range(&t, 0, 20);
	ok(answer(&t, 0, bytes, 20, hex, &e) == DL_IOERR,
		"a disk that is full: %s", e.text);
	take_release(&t);
	close(fd);
}

static void test_shrunk(void)
{
	struct side giver, taker;
	struct take t;
	struct dl_err e;
	int fd = scratch(), gone = scratch();

	open_pair(&giver, &taker);
	if (dl_write_full(gone, bytes, 1000))
		abort();
	giver.give = give_new(&giver.conn, errands, gone, 1001, &e);
	taker.take = &t;
	take_init(&t, fd);
	take_range(&t, 0, 1001);
	take_ask(&t, &taker.conn);
	run(&giver, &taker, 1);
	ok(give_failed(giver.give, &e) == DL_IOERR && !take_whole_ranges(&t),
		"a file that has shrunk: %s", e.text);
	close_side(&giver);
	close_side(&taker);
	take_release(&t);
	close(fd);
	close(gone);
}

/* It goes while pieces are read and sent: all is freed, as the sanitizers and
 * the count of errands can see. */
static void test_gone(void)
{
	struct side giver, taker;
	struct take t;
	struct dl_err e;
	int fd = scratch();

	for (int i = 0; i < 20; i++) {
		begin(&giver, &taker, &t);
		take_init(&t, fd);
		take_range(&t, 0, SIZE);
		take_ask(&t, &taker.conn);
		turn(&taker, -1, 0);
		for (int k = 0; k < i; k++) {
			work(&giver);
			dl_loop_once(&loop, dl_now(), &e);
		}
		close_side(&giver);
		close_side(&taker);
		take_release(&t);
	}
	while (dl_errands_left(errands))
		dl_loop_once(&loop, dl_now() + DL_SECOND, &e);
	ok(1, "who gives may go at any time");
	close(fd);
}

int main(void)
{
	struct dl_err e = {0};

	errands = dl_errands_new(&loop, &e);
	file = scratch();
	bytes = dl_alloc(SIZE + 8);
	for (size_t i = 0; i < SIZE; i += 8)
		dl_put_le64(bytes + i, dl_rng_at(1, i));
	if (!errands || dl_write_full(file, bytes, SIZE))
		abort();
	test_whole();
	test_ranges();
	test_resume();
	test_asking();
	test_answers();
	test_full();
	test_shrunk();
	test_gone();
	dl_errands_free(errands);
	dl_loop_release(&loop);
	free(bytes);
	close(file);
	return done_testing();
}
