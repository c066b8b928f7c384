/*
 * A session between two connections, with somebody on the way who changes,
 * repeats, reorders and cuts what they send.
 */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/conn.h"
#include "tests/tap.h"

enum { MUCH = 1 << 16 };

struct side {
	struct dl_conn c;
	struct dl_err why;
	int over;
	int messages;
	char text[64]; /* of the last one */
};

static struct dl_key learner_key, syncer_key, other_key;
static const struct dl_handshake_config learner = {
	&learner_key, syncer_key.public, "demo"};
static const struct dl_handshake_config misled = {
	&learner_key, other_key.public, "demo"};
static const struct dl_handshake_config syncer = {&syncer_key, NULL, "demo"};

static int got_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct side *s = ctx;

	(void)c;
	(void)e;
	s->messages++;
	snprintf(s->text, sizeof(s->text), "%s", m->text);
	return 0;
}

static int begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)m;
	(void)h;
	(void)dest;
	return dl_fail(e, DL_PROTOCOL, "no data here");
}

static const struct dl_conn_handlers handlers = {got_message, begin, NULL};

/* Between a and b: what a says waits at at_a until the test passes it on. */
struct way {
	struct side a, b;
	int at_a, at_b;
};

static int open_side(struct side *s, const struct dl_handshake_config *session)
{
	struct dl_conn_config cf = {
		.handlers = &handlers,
		.ctx = s,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_CONTROL,
		.queue = DL_CONN_QUEUE,
		.session = session,
	};
	int fd[2];

	memset(s, 0, sizeof(*s));
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	dl_conn_init(&s->c, fd[0], &cf, 0);
	return fd[1];
}

static void open_way(struct way *w, const struct dl_handshake_config *a,
	const struct dl_handshake_config *b)
{
	w->at_a = open_side(&w->a, a);
	w->at_b = open_side(&w->b, b);
}

static void close_way(struct way *w)
{
	dl_conn_release(&w->a.c);
	dl_conn_release(&w->b.c);
	close(w->at_a);
	close(w->at_b);
}

static void work(struct side *s, int64_t now)
{
	if (!s->over)
		s->over = dl_conn_work(&s->c, POLLIN | POLLOUT, now, &s->why);
}

/* Passes on what waits at one end; 0 when nothing does. */
static int pass(int from, int to)
{
	unsigned char bytes[MUCH];
	ssize_t n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0 && send(to, bytes, (size_t)n, MSG_NOSIGNAL) != n)
		return 0;
	return n > 0;
}

static void settle(struct way *w)
{
	int moved;

	do {
		work(&w->a, 0);
		work(&w->b, 0);
		moved = pass(w->at_a, w->at_b);
		moved |= pass(w->at_b, w->at_a);
	} while (moved);
}

static void say(struct side *s, const char *text)
{
	struct dl_message m = {
		.kind = DL_MSG_ERROR, .code = DL_NOPERM, .text = text};

	dl_conn_send(&s->c, &m);
}

/* What a says next, taken off the way. */
static size_t catch (struct way *w, const char *text, unsigned char *out)
{
	ssize_t n;

	say(&w->a, text);
	work(&w->a, 0);
	n = recv(w->at_a, out, MUCH, MSG_DONTWAIT);
	return n > 0 ? (size_t)n : 0;
}

static void give(struct way *w, const void *p, size_t n)
{
	if (send(w->at_b, p, n, MSG_NOSIGNAL) != (ssize_t)n)
		abort();
	work(&w->b, 0);
}

static void test_sound(struct way *w)
{
	unsigned char bytes[MUCH];
	size_t n;

	open_way(w, &learner, &syncer);
	say(&w->a, "queued early");
	ok(!dl_conn_peer(&w->a.c) && !dl_conn_peer(&w->b.c),
		"nobody knows the other yet");
	settle(w);
	ok(w->b.messages == 1 && !strcmp(w->b.text, "queued early"),
		"what was queued before the handshake arrives after it");
	ok(!memcmp(dl_conn_peer(&w->a.c), syncer_key.public, DL_KEY) &&
			!memcmp(dl_conn_peer(&w->b.c), learner_key.public,
				DL_KEY),
		"and each knows the other's key");
	n = catch (w, "rosebud", bytes);
	ok(n > 7 && !memmem(bytes, n, "rosebud", 7) &&
			!memmem(bytes, n, "dl.kind", 7),
		"nothing of it can be read on the way");
	give(w, bytes, n);
	say(&w->b, "and back");
	settle(w);
	ok(!strcmp(w->b.text, "rosebud") && !strcmp(w->a.text, "and back"),
		"messages go both ways");
	close_way(w);
}

/* A bit of every byte of a frame: never heard. A longer length waits for more,
 * which does not open either. */
static void test_flips(struct way *w)
{
	unsigned char bytes[MUCH];
	size_t n, i, heard = 0, lives = 0;

	for (i = n = 1; i <= n; i++) {
		open_way(w, &learner, &syncer);
		settle(w);
		n = catch (w, "flip", bytes);
		bytes[i - 1] ^= (unsigned char)(1 << i % 8);
		give(w, bytes, n);
		memset(bytes, 0, sizeof(bytes));
		if (!w->b.over)
			give(w, bytes, MUCH);
		heard += (size_t)w->b.messages;
		lives += w->b.over != DL_PROTOCOL;
		close_way(w);
	}
	ok(n > 100 && !heard && !lives,
		"a flip in any of %zu bytes ends it, unheard: %s", n,
		w->b.why.text);
}

static void test_cuts(struct way *w)
{
	unsigned char bytes[MUCH];
	size_t n, i, wrong = 0;

	for (i = n = 1; i < n || i == 1; i++) {
		open_way(w, &learner, &syncer);
		settle(w);
		n = catch (w, "cut", bytes);
		give(w, bytes, i);
		wrong += w->b.over || w->b.messages;
		shutdown(w->at_b, SHUT_WR);
		work(&w->b, 0);
		wrong += w->b.over != DL_UNAVAILABLE || w->b.messages ||
			 strcmp(w->b.why.text, "closed inside a frame") != 0;
		close_way(w);
	}
	ok(n > 100 && !wrong, "an end after any of %zu bytes is an end", n);
}

static void test_order(struct way *w)
{
	unsigned char first[MUCH], second[MUCH];
	size_t n, m;

	open_way(w, &learner, &syncer);
	settle(w);
	n = catch (w, "one", first);
	give(w, first, n);
	give(w, first, n);
	ok(w->b.messages == 1 && w->b.over == DL_PROTOCOL,
		"a frame sent again ends it: %s", w->b.why.text);
	close_way(w);

	open_way(w, &learner, &syncer);
	settle(w);
	n = catch (w, "one", first);
	m = catch (w, "two", second);
	give(w, second, m);
	ok(w->b.messages == 0 && w->b.over == DL_PROTOCOL,
		"so does one before its time");
	(void)n;
	close_way(w);

	open_way(w, &learner, &syncer);
	settle(w);
	n = catch (w, "one", first);
	send(w->at_a, first, n, 0);
	work(&w->a, 0);
	ok(w->a.messages == 0 && w->a.over == DL_PROTOCOL, "and one sent back");
	close_way(w);
}

/* All that a learner said, played again to the same syncer. */
static void test_replay(struct way *w)
{
	unsigned char bytes[MUCH];
	struct side late;
	size_t n = 0;
	ssize_t got;
	int fd, i;

	open_way(w, &learner, &syncer);
	say(&w->a, "replayed");
	for (i = 0; i < 8; i++) {
		work(&w->a, 0);
		got = recv(w->at_a, bytes + n, MUCH - n, MSG_DONTWAIT);
		if (got > 0) {
			give(w, bytes + n, (size_t)got);
			n += (size_t)got;
		}
		pass(w->at_b, w->at_a);
	}
	fd = open_side(&late, &syncer);
	if (send(fd, bytes, n, 0) != (ssize_t)n)
		abort();
	work(&late, 0);
	ok(w->b.messages == 1 && late.messages == 0 && late.over == DL_PROTOCOL,
		"a session played again says nothing: %s", late.why.text);
	dl_conn_release(&late.c);
	close(fd);
	close_way(w);
}

/* Words to a plain end, a byte at a time. */
static void test_words(struct way *w, const char *words, const char *fact)
{
	open_way(w, NULL, NULL);
	for (size_t i = 0; words[i] && !w->b.over; i++) {
		if (send(w->at_b, words + i, 1, 0) != 1)
			abort();
		work(&w->b, 0);
	}
	ok(w->b.over && strstr(w->b.why.text, fact), "in pieces: %s",
		w->b.why.text);
	close_way(w);
}

static void test_refused(struct way *w)
{
	open_way(w, &misled, &syncer);
	settle(w);
	ok(w->a.over == DL_PROTOCOL && strstr(w->a.why.text, "another key") &&
			w->b.over == DL_PROTOCOL,
		"wrong key: %s; %s", w->a.why.text, w->b.why.text);
	close_way(w);

	open_way(w, NULL, &syncer);
	say(&w->a, "plain");
	settle(w);
	ok(w->a.over == DL_PROTOCOL && strstr(w->a.why.text, "sessions") &&
			w->b.over == DL_PROTOCOL,
		"plain to a session: %s; %s", w->a.why.text, w->b.why.text);
	close_way(w);

	open_way(w, &learner, NULL);
	settle(w);
	ok(w->a.over == DL_PROTOCOL && strstr(w->a.why.text, "no sessions") &&
			w->b.over == DL_PROTOCOL &&
			strstr(w->b.why.text, "asks for a session"),
		"a session to plain: %s; %s", w->a.why.text, w->b.why.text);
	close_way(w);
	test_words(w, "dl-tools 1 ", "asks for a session");
	test_words(w, "error 77 not you\n", "not you");
}

/* The slow get no further, and cost little. */
static void test_time(struct way *w)
{
	int64_t now;

	open_way(w, &learner, &syncer);
	ok(dl_conn_deadline(&w->b.c) == 5 * DL_SECOND, "a handshake is due");
	for (now = 0; now < 10 && !w->b.over; now++) {
		if (send(w->at_b, "d", 1, 0) != 1)
			abort();
		work(&w->b, now * DL_SECOND);
	}
	ok(w->b.over == DL_UNAVAILABLE && now == 6,
		"a byte a second is too slow: %s", w->b.why.text);
	ok(w->b.c.main.in.cap == 0, "and has cost no buffer");
	close_way(w);

	open_way(w, &learner, &syncer);
	say(&w->a, "never sent");
	dl_conn_finish(&w->a.c, 10);
	settle(w);
	ok(!w->b.messages && recv(w->at_a, &now, sizeof(now), 0) == 0,
		"who finishes before it says no more");
	close_way(w);
}

int main(void)
{
	static struct way w;

	if (sodium_init() < 0)
		return 99;
	dl_key_make(&learner_key);
	dl_key_make(&syncer_key);
	dl_key_make(&other_key);
	test_sound(&w);
	test_flips(&w);
	test_cuts(&w);
	test_order(&w);
	test_replay(&w);
	test_refused(&w);
	test_time(&w);
	return done_testing();
}
