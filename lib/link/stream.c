#include "link/stream.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	ROOM = 256 * 1024, /* received bytes kept: several whole frames */
	CALLS = 4,	   /* a dl_stream_read, so that others get a turn */
};

void dl_stream_init(struct dl_stream *s, int fd, int64_t now)
{
	*s = (struct dl_stream){.fd = fd, .heard = now, .sent = now};
}

void dl_stream_release(struct dl_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	dl_buf_free(&s->in);
}

/* All whole frames that have come; what is left moves to the front. take may
 * make the stream deaf on the way. */
static int take_frames(
	struct dl_stream *s, dl_stream_take *take, void *ctx, struct dl_err *e)
{
	size_t at = 0, used;
	struct dl_frame f;
	int code;

	while (!s->deaf) {
		code = dl_frame_parse(
			&f, s->in.data + at, s->in.len - at, &used, e);
		if (!code && !used)
			break;
		if (!code)
			code = take(ctx, &f, e);
		if (code)
			return code;
		at += used;
	}
	dl_buf_drop(&s->in, s->deaf ? s->in.len : at);
	return 0;
}

/* What the socket has at once: *got bytes, or 0 when there are none. */
static int receive(struct dl_stream *s, size_t *got, struct dl_err *e)
{
	ssize_t n;

	*got = 0;
	do
		n = recv(s->fd, s->in.data + s->in.len, s->in.cap - s->in.len,
			MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < 0)
		return dl_fail_sys(e, DL_UNAVAILABLE, "receiving");
	s->closed = n == 0 && !s->in.len;
	if (n == 0)
		return dl_fail(e, DL_UNAVAILABLE,
			s->closed ? "closed" : "closed inside a frame");
	*got = (size_t)n;
	return 0;
}

int dl_stream_read(struct dl_stream *s, dl_stream_take *take, void *ctx,
	int64_t now, struct dl_err *e)
{
	size_t room, got;
	int calls, code;

	if (!s->in.cap)
		dl_buf_reserve(&s->in, ROOM);
	for (calls = 0; calls < CALLS; calls++) {
		room = s->in.cap - s->in.len;
		code = receive(s, &got, e);
		if (code || !got)
			return code;
		s->bytes_in += got;
		s->heard = now;
		s->in.len += got;
		code = take_frames(s, take, ctx, e);
		if (code || got < room)
			return code;
	}
	return 0;
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

int dl_stream_write(struct dl_stream *s, struct dl_batch *b, size_t *frames,
	int *more, int64_t now, struct dl_err *e)
{
	size_t done = s->begun.written;
	struct iovec *v = skip(b, done);
	struct msghdr msg = {
		.msg_iov = v,
		.msg_iovlen = b->pieces - (size_t)(v - b->piece),
	};
	ssize_t n;

	*frames = 0;
	*more = 0;
	do
		n = sendmsg(s->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < 0)
		return dl_fail_sys(e, DL_UNAVAILABLE, "sending");
	s->bytes_out += (uint64_t)n;
	s->sent = now;
	done += (size_t)n;
	*more = done == b->bytes;
	*frames = count(s, b, done);
	return 0;
}
