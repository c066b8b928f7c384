/*
 * Any frames to a connection, plain and in a session: it hears the same and
 * ends in the same way. Of sealed frames with a byte changed on the way it
 * hears those before, and no other.
 *
 * The input: which byte of the sealed ones is changed (two bytes) and how (one,
 * 0: not), then plain frames.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "keys.h"
#include "link/conn.h"
#include "link/session.h"

enum { LONGEST = 16384 }; /* input, less than a socket holds */

struct heard {
	uint64_t messages, records, bytes;
	int code;
	struct dl_err why;
};

static int message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)e;
	h->messages++;
	return 0;
}

static int begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *header, void **dest, struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)dest;
	(void)e;
	h->bytes += header->data_size;
	return 0;
}

static int whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *header, void *dest, struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)header;
	(void)dest;
	(void)e;
	h->records++;
	return 0;
}

/* The connection that listens, and the socket that it hears. */
struct link {
	struct dl_conn c;
	struct heard heard;
	int fd;
};

static const struct dl_handshake_config ours = {
	.own = &fuzz_syncer, .run = "demo"};

static void open_link(struct link *k, int sealed)
{
	static const struct dl_conn_handlers handlers = {message, begin, whole};
	struct dl_conn_config cf = {
		.handlers = &handlers,
		.ctx = &k->heard,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_CONTROL,
		.queue = DL_CONN_QUEUE,
		.session = sealed ? &ours : NULL,
	};
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	memset(k, 0, sizeof(*k));
	dl_conn_init(&k->c, fd[0], &cf, 0);
	k->fd = fd[1];
}

static void work(struct link *k)
{
	if (!k->heard.code)
		k->heard.code =
			dl_conn_work(&k->c, POLLIN | POLLOUT, 0, &k->heard.why);
}

static void say(struct link *k, const void *p, size_t n)
{
	if (n && write(k->fd, p, n) != (ssize_t)n)
		abort();
	work(k);
}

static void close_link(struct link *k)
{
	close(k->fd);
	while (!k->heard.code)
		work(k);
	dl_conn_release(&k->c);
}

/* A learner's session with the connection at the other end. */
static struct dl_session *meet(struct link *k)
{
	struct dl_handshake_config c = {
		.own = &fuzz_learner, .peer = fuzz_syncer.public, .run = ""};
	struct dl_session *s = dl_session_new(&c);
	unsigned char bytes[1024];
	const void *out;
	size_t n, used;
	ssize_t got;

	while (!dl_session_ready(s)) {
		out = dl_session_output(s, &n);
		say(k, out, n);
		dl_session_sent(s, n);
		got = read(k->fd, bytes, sizeof(bytes));
		if (got <= 0 ||
			dl_session_begin(s, bytes, (size_t)got, &used, NULL))
			abort();
	}
	return s;
}

/* Seals one frame onto out. */
static void seal(
	struct dl_session *s, const struct dl_frame *f, struct dl_buf *out)
{
	struct dl_batch b;
	const void *bytes;
	size_t n, frames;

	dl_batch_clear(&b);
	dl_batch_frame(&b, f->channel, f->n);
	dl_batch_add(&b, f->payload, f->n);
	if (dl_session_seal(s, &b, &frames, NULL) || frames != 1)
		abort();
	bytes = dl_session_output(s, &n);
	dl_buf_add(out, bytes, n);
	dl_session_sent(s, n);
}

/* The size of the whole frames at the front. */
static size_t count_frames(const uint8_t *data, size_t n)
{
	struct dl_frame f;
	size_t at = 0, used;

	while (!dl_frame_parse(&f, data + at, n - at, &used, NULL) && used)
		at += used;
	return at;
}

static struct heard hear_plain(const uint8_t *data, size_t n)
{
	struct link k;

	open_link(&k, 0);
	say(&k, data, n);
	close_link(&k);
	return k.heard;
}

static struct heard hear_sealed(
	const uint8_t *data, size_t n, size_t flip_at, uint8_t flip)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_session *s;
	struct dl_frame f;
	struct link k;
	size_t used;

	fuzz_reset_random();
	open_link(&k, 1);
	s = meet(&k);
	for (; n; data += used, n -= used) {
		if (dl_frame_parse(&f, data, n, &used, NULL))
			abort();
		seal(s, &f, &out);
	}
	if (out.len)
		out.data[flip_at % out.len] ^= flip;
	say(&k, out.data, out.len);
	close_link(&k);
	dl_session_free(s);
	dl_buf_free(&out);
	return k.heard;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct heard plain, sealed;
	size_t frames;

	if (n < 3 || n > LONGEST)
		return 0;
	fuzz_make_keys();
	frames = count_frames(data + 3, n - 3);
	plain = hear_plain(data + 3, frames);
	sealed = hear_sealed(data + 3, frames, dl_le16(data), data[2]);
	if (!plain.code || !sealed.code || sealed.messages > plain.messages ||
		sealed.records > plain.records || sealed.bytes > plain.bytes)
		abort();
	if (!data[2] && (sealed.messages != plain.messages ||
				sealed.records != plain.records ||
				sealed.bytes != plain.bytes ||
				sealed.code != plain.code ||
				strcmp(sealed.why.text, plain.why.text) != 0))
		abort();
	if (data[2] && frames && sealed.code != DL_PROTOCOL &&
		sealed.code != DL_UNAVAILABLE)
		abort();
	return 0;
}
