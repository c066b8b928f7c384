#include "link/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/guess.h"

enum {
	ROOM = 256 * 1024,   /* received bytes kept: several whole frames */
	CALLS = 4,	     /* a dl_stream_read, so that others get a turn */
	READS_A_SECOND = 16, /* at least, of a stream that has a rate */
	SMALL = 512,	     /* read at once during a handshake */
};

void dl_stream_init(struct dl_stream *s, int fd,
	const struct dl_handshake_config *c, int64_t now)
{
	*s = (struct dl_stream){.fd = fd,
		.heard = now,
		.sent = now,
		.session = c ? dl_session_new(c) : NULL};
}

void dl_stream_release(struct dl_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	dl_session_free(s->session);
	s->session = NULL;
	dl_buf_free(&s->in);
}

int dl_stream_ready(const struct dl_stream *s)
{
	return !s->session || dl_session_ready(s->session);
}

int dl_stream_waits(const struct dl_stream *s)
{
	size_t n = 0;

	if (s->session)
		dl_session_output(s->session, &n);
	return n > 0;
}

const unsigned char *dl_stream_peer(const struct dl_stream *s)
{
	return s->session && dl_session_ready(s->session)
		       ? dl_session_peer(s->session)
		       : NULL;
}

static int parse(struct dl_stream *s, struct dl_frame *f, size_t at,
	size_t *used, struct dl_err *e)
{
	unsigned char *p = s->in.data + at;
	size_t n = s->in.len - at;

	return s->session ? dl_session_open(s->session, f, p, n, used, e)
			  : dl_frame_parse(f, p, n, used, e);
}

/* Can what has come be the beginning of n bytes at word, or more than them? */
static int begins(const struct dl_stream *s, const char *word, size_t n)
{
	return memcmp(s->in.data, word, s->in.len < n ? s->in.len : n) == 0;
}

/* The first bytes are no frame: the other may want a session, or think that we
 * do and have said why there is none. 0 while that is not known. */
static int explain(struct dl_stream *s, struct dl_err *e)
{
	static const char magic[] = {'d', 'l', '-', 't', 'o', 'o', 'l', 's'};
	static const char error[] = {'e', 'r', 'r', 'o', 'r', ' '};
	const char *p = (const char *)s->in.data;
	char words[DL_PREFACE_LINE];
	size_t n;

	if (s->session || s->bytes_in != s->in.len)
		return e->code;
	if (begins(s, error, sizeof(error)) &&
		!dl_preface_line(p, s->in.len, &n, NULL)) {
		if (!n)
			return 0;
		if (dl_preface_refused(p, n, e))
			return e->code;
	}
	if (!begins(s, magic, sizeof(magic)))
		return e->code;
	if (s->in.len < sizeof(magic))
		return 0;
	n = dl_preface_refuse(
		words, DL_PROTOCOL, "no sessions here, plain tcp only");
	if (send(s->fd, words, n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		shutdown(s->fd, SHUT_WR);
	return dl_fail(e, DL_PROTOCOL, "asks for a session on a plain link");
}

/* What has come at p of a frame of data that was taken in part. */
static int take_part(struct dl_stream *s, const unsigned char *p, size_t n,
	size_t *used, const struct dl_stream_taker *t, void *ctx,
	struct dl_err *e)
{
	struct dl_frame f = {DL_CHANNEL_DATA, p, n < s->left ? n : s->left};

	*used = f.n;
	s->left -= f.n;
	return t->frame(ctx, &f, e);
}

static int take_frame(struct dl_stream *s, size_t at, size_t *used,
	const struct dl_stream_taker *t, void *ctx, struct dl_err *e)
{
	struct dl_frame f;

	if (s->left)
		return take_part(
			s, s->in.data + at, s->in.len - at, used, t, ctx, e);
	if (parse(s, &f, at, used, e))
		return explain(s, e);
	return *used ? t->frame(ctx, &f, e) : 0;
}

/* All whole frames that have come; what is left moves to the front. */
static int take_frames(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, struct dl_err *e)
{
	size_t at = 0, used;
	int code;

	while (at < s->in.len && !s->deaf && !s->paused) {
		code = take_frame(s, at, &used, t, ctx, e);
		if (code)
			return code;
		if (!used)
			break;
		at += used;
	}
	dl_buf_drop(&s->in, s->deaf ? s->in.len : at);
	return 0;
}

/* What the socket has at once: *got, or 0 when there is nothing. */
static int receive(struct dl_stream *s, struct iovec *v, size_t pieces,
	size_t *got, int64_t now, struct dl_err *e)
{
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = pieces};
	ssize_t have;

	*got = 0;
	do
		have = recvmsg(s->fd, &msg, MSG_DONTWAIT);
	while (have < 0 && errno == EINTR);
	if (have < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (have < 0)
		return dl_fail_sys(e, DL_UNAVAILABLE, "receiving");
	s->closed = have == 0 && !s->in.len && (!s->left || s->deaf);
	if (have == 0)
		return dl_fail(e, DL_UNAVAILABLE,
			s->closed ? "closed" : "closed inside a frame");
	*got = (size_t)have;
	s->bytes_in += *got;
	s->heard = now;
	return 0;
}

/* Tells the other why there is no session: once, into a socket that has room,
 * for the stream is over. */
static void send_last_words(struct dl_stream *s)
{
	const void *p;
	size_t n;

	p = dl_session_output(s->session, &n);
	if (n && send(s->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
		shutdown(s->fd, SHUT_WR);
}

/* The handshake's next bytes, with little memory: it may be a stranger's. */
static int read_handshake(struct dl_stream *s, int64_t now, struct dl_err *e)
{
	unsigned char bytes[SMALL];
	struct iovec v = {bytes, sizeof(bytes)};
	size_t got, used;
	int code = receive(s, &v, 1, &got, now, e);

	if (s->closed)
		return dl_fail(e, code, "closed during the handshake");
	if (code)
		return code;
	if (!got || s->deaf)
		return 0;
	code = dl_session_begin(s->session, bytes, got, &used, e);
	if (code)
		send_last_words(s);
	else if (used < got)
		dl_buf_add(&s->in, bytes + used, got - used);
	return code;
}

/* How many of room bytes may be read now: little by little, so that no pause
 * is long. */
static size_t allowed(const struct dl_stream *s, size_t room, int64_t now)
{
	uint64_t most;

	if (!s->rate || !s->rate->bytes)
		return room;
	if (now < dl_rate_next(s->rate))
		return 0;
	most = s->rate->bytes / READS_A_SECOND + 1;
	return room < most ? room : (size_t)most;
}

/* All that comes, to be parsed: *more says that there may be more. */
static int read_frames(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, int *more, int64_t now, struct dl_err *e)
{
	struct iovec v = {
		s->in.data + s->in.len, allowed(s, s->in.cap - s->in.len, now)};
	size_t got;
	int code;

	*more = 0;
	if (!v.iov_len)
		return 0;
	code = receive(s, &v, 1, &got, now, e);
	if (code || !got)
		return code;
	*more = got == v.iov_len;
	s->in.len += got;
	if (s->rate)
		dl_rate_take(s->rate, got, now);
	return take_frames(s, t, ctx, e);
}

/* A frame of data of which a part has come: that is taken, so that the rest can
 * be received in its place. */
static int take_begun(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, struct dl_err *e)
{
	size_t used, n = s->in.len - DL_FRAME_HEAD;

	s->left = dl_le16(s->in.data) - 1;
	if (n && take_part(s, s->in.data + DL_FRAME_HEAD, n, &used, t, ctx, e))
		return e->code;
	dl_buf_clear(&s->in);
	return 0;
}

/* Where the next bytes are to be received, if they are likely to be data. */
static void *find_place(const struct dl_stream *s,
	const struct dl_stream_taker *t, void *ctx, size_t *n)
{
	int begun =
		s->in.len >= DL_FRAME_HEAD && s->in.data[2] == DL_CHANNEL_DATA;

	if (!t->place || s->session || s->deaf || (s->in.len && !begun) ||
		(s->rate && s->rate->bytes))
		return NULL;
	return t->place(ctx, n);
}

/* Data goes where it belongs. */
static int read_in_place(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, int *more, int64_t now, struct dl_err *e)
{
	struct dl_guess g;
	size_t n, got, all = 0;
	void *p = t->place(ctx, &n);
	int code;

	dl_guess_make(&g, s->left, p, n);
	for (size_t i = 0; i < g.pieces; i++)
		all += g.piece[i].iov_len;
	code = receive(s, g.piece, g.pieces, &got, now, e);
	*more = got == all;
	if (code || !got)
		return code;
	n = dl_guess_check(&g, got, &s->left, &s->in);
	code = n ? t->placed(ctx, n, e) : 0;
	return code ? code : take_frames(s, t, ctx, e);
}

static int read_more(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, int *more, int64_t now, struct dl_err *e)
{
	size_t n;

	if (find_place(s, t, ctx, &n) && s->in.len && take_begun(s, t, ctx, e))
		return e->code;
	return find_place(s, t, ctx, &n)
		       ? read_in_place(s, t, ctx, more, now, e)
		       : read_frames(s, t, ctx, more, now, e);
}

int dl_stream_read(struct dl_stream *s, const struct dl_stream_taker *t,
	void *ctx, int64_t now, struct dl_err *e)
{
	int code = 0, more = 1;

	if (!dl_stream_ready(s)) {
		code = read_handshake(s, now, e);
		if (code || !dl_stream_ready(s))
			return code;
	}
	/* What came behind a handshake, or before a pause. */
	code = take_frames(s, t, ctx, e);
	if (code)
		return code;
	if (s->in.cap < ROOM)
		dl_buf_reserve(&s->in, ROOM - s->in.len);
	for (int i = 0; more && !code && i < CALLS && !s->paused; i++)
		code = read_more(s, t, ctx, &more, now, e);
	return code;
}

/* The part of the first frame that has been written is not sent again. */
static struct iovec *skip(struct dl_batch *b, size_t n)
{
	struct iovec *v = b->piece;

	while (n >= v->iov_len) {
		n -= v->iov_len;
		v++;
	}
	v->iov_base = (char *)v->iov_base + n;
	v->iov_len -= n;
	return v;
}

/* The first n bytes of the batch are written by now: so many whole frames. */
static size_t count(struct dl_stream *s, const struct dl_batch *b, size_t n)
{
	size_t i, size;

	for (i = 0; i < b->frames; i++) {
		size = DL_FRAME_HEAD + b->frame[i].n;
		if (n < size)
			break;
		n -= size;
	}
	s->begun.written = n;
	if (n) {
		s->begun.channel = b->frame[i].channel;
		s->begun.n = b->frame[i].n;
	}
	return i;
}

/* How much the socket takes of what msg has: 0 when it takes nothing now. */
static int put(struct dl_stream *s, struct iovec *v, size_t pieces,
	size_t *taken, int64_t now, struct dl_err *e)
{
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = pieces};
	ssize_t n;

	*taken = 0;
	do
		n = sendmsg(s->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < 0)
		return dl_fail_sys(e, DL_UNAVAILABLE, "sending");
	*taken = (size_t)n;
	s->bytes_out += *taken;
	s->sent = now;
	return 0;
}

static int write_plain(struct dl_stream *s, struct dl_batch *b, size_t *frames,
	int *more, int64_t now, struct dl_err *e)
{
	size_t done = s->begun.written, taken;
	struct iovec *v = skip(b, done);
	int code =
		put(s, v, b->pieces - (size_t)(v - b->piece), &taken, now, e);

	if (code)
		return code;
	dl_tcp_took(&s->pace, s->fd, taken, now);
	done += taken;
	*more = done == b->bytes;
	*frames = count(s, b, done);
	return 0;
}

static int write_sealed(struct dl_stream *s, const struct dl_batch *b,
	size_t *frames, int *more, int64_t now, struct dl_err *e)
{
	struct iovec v = {NULL, 0};
	size_t taken;
	int code = 0;

	if (!dl_stream_waits(s))
		code = dl_session_seal(s->session, b, frames, e);
	if (code)
		return code;
	v.iov_base = (void *)dl_session_output(s->session, &v.iov_len);
	code = put(s, &v, 1, &taken, now, e);
	dl_session_sent(s->session, taken);
	*more = !code && taken == v.iov_len;
	return code;
}

int dl_stream_write(struct dl_stream *s, struct dl_batch *b, size_t *frames,
	int *more, int64_t now, struct dl_err *e)
{
	*frames = 0;
	*more = 0;
	return s->session ? write_sealed(s, b, frames, more, now, e)
			  : write_plain(s, b, frames, more, now, e);
}
