#include "link/conn.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/num.h"
#include "link/conn_io.h"

void dl_conn_init(
	struct dl_conn *c, int fd, const struct dl_conn_config *cf, int64_t now)
{
	*c = (struct dl_conn){
		.config = *cf, .handshake = now + DL_CONN_HANDSHAKE};
	dl_stream_init(&c->main, fd, cf->session, now);
	c->config.session = NULL; /* only what it points to stays */
	dl_reader_init(&c->reader[DL_CHANNEL_CONTROL], cf->control);
	dl_reader_init(&c->reader[DL_CHANNEL_DATA], cf->data);
}

void dl_conn_release(struct dl_conn *c)
{
	if (c->loop)
		dl_loop_remove(c->loop, c->main.fd);
	if (c->stripes)
		dl_stripes_free(c);
	dl_stream_release(&c->main);
	dl_conn_drop_output(c);
	dl_reader_release(&c->reader[DL_CHANNEL_CONTROL]);
	dl_reader_release(&c->reader[DL_CHANNEL_DATA]);
	dl_buf_free(&c->control_in);
}

const unsigned char *dl_conn_peer(const struct dl_conn *c)
{
	return dl_stream_peer(&c->main);
}

short dl_conn_events(const struct dl_conn *c)
{
	short in = c->rests ? 0 : POLLIN;

	return !c->shut && dl_conn_has_output(c) ? in | POLLOUT : in;
}

/* When a heartbeat is due; INT64_MAX: while other things go out, never. */
static int64_t beat_at(const struct dl_conn *c)
{
	int64_t pause = c->config.beat_ns;

	return pause && dl_stream_ready(&c->main) && !dl_conn_has_output(c)
		       ? c->main.sent + pause
		       : INT64_MAX;
}

void dl_conn_watch(
	struct dl_conn *c, struct dl_loop *l, dl_loop_fn *fn, void *ctx)
{
	c->loop = l;
	dl_loop_set(l, c->main.fd, dl_conn_events(c), fn, ctx);
	if (c->stripes)
		dl_stripes_watch(c, fn, ctx);
}

uint64_t dl_conn_bytes_in(const struct dl_conn *c)
{
	uint64_t n = c->gone_in + c->main.bytes_in;
	unsigned i;

	for (i = 1; c->stripes && i < c->stripes->streams; i++)
		if (c->stripes->lane[i].stream)
			n += c->stripes->lane[i].stream->bytes_in;
	return n;
}

uint64_t dl_conn_bytes_out(const struct dl_conn *c)
{
	uint64_t n = c->gone_out + c->main.bytes_out;
	unsigned i;

	for (i = 1; c->stripes && i < c->stripes->streams; i++)
		if (c->stripes->lane[i].stream)
			n += c->stripes->lane[i].stream->bytes_out;
	return n;
}

int64_t dl_conn_deadline(const struct dl_conn *c)
{
	int64_t at = beat_at(c);

	if (c->why.code)
		return 0;
	if (c->rests && c->rests < at)
		at = c->rests;
	if (c->finish)
		return c->held && c->held < c->finish ? c->held : c->finish;
	if (c->config.silence_ns && c->main.heard + c->config.silence_ns < at)
		at = c->main.heard + c->config.silence_ns;
	if (!dl_stream_ready(&c->main) && c->handshake < at)
		at = c->handshake;
	if (c->held && c->out.item && c->held < at)
		at = c->held;
	if (c->stripes && dl_stripes_deadline(c) < at)
		at = dl_stripes_deadline(c);
	return at;
}

static int is_silent(const struct dl_conn *c, int64_t now)
{
	int64_t limit = c->config.silence_ns;

	return limit && now - c->main.heard >= limit;
}

/* What is due by time alone. */
static int check_time(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	char silence[DL_HUMAN];

	if (c->finish)
		return now < c->finish ? 0
				       : dl_fail(e, DL_UNAVAILABLE, "finished");
	if (is_silent(c, now))
		return dl_fail(e, DL_UNAVAILABLE, "silent for %s",
			dl_human_duration(silence, now - c->main.heard));
	if (!dl_stream_ready(&c->main) && now >= c->handshake)
		return dl_fail(e, DL_UNAVAILABLE, "no handshake within %s",
			dl_human_duration(silence, DL_CONN_HANDSHAKE));
	if (now >= beat_at(c))
		c->out.beat = 1;
	return 0;
}

/* Main takes nothing now: poll tells when it does. */
static int is_full(const struct dl_conn *c)
{
	return c->stripes ? c->stripes->lane[0].full : c->full;
}

/* Writes; the last byte of a finishing connection closes this direction. */
static int do_output(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	struct dl_err late = {0};
	int code, last;

	if (c->shut)
		return 0;
	code = is_full(c) ? 0 : dl_conn_write(c, now, e);
	if (code) {
		/* The peer may have said why before it went. */
		last = dl_conn_read(c, now, &late);
		if (last)
			*e = late;
		return last ? last : code;
	}
	if (c->finish && !dl_conn_has_queue(c)) {
		shutdown(c->main.fd, SHUT_WR);
		c->shut = 1;
	}
	return 0;
}

static int turn_main(
	struct dl_conn *c, short revents, int64_t now, struct dl_err *e)
{
	int code = 0;

	if (now >= c->held)
		c->held = 0;
	if (now >= c->rests)
		c->rests = 0;
	if (revents & POLLOUT)
		*(c->stripes ? &c->stripes->lane[0].full : &c->full) = 0;
	/* It is not silent when we were busy and its bytes wait here. */
	if (revents & ~POLLOUT || is_silent(c, now))
		code = dl_conn_read(c, now, e);
	if (!code && !c->why.code)
		code = check_time(c, now, e);
	if (!code && !c->why.code)
		code = do_output(c, now, e);
	return code;
}

int dl_conn_turn(
	struct dl_conn *c, int fd, short revents, int64_t now, struct dl_err *e)
{
	struct dl_err why = {0};
	int code = c->why.code;

	if (!code)
		code = turn_main(c, fd == c->main.fd ? revents : 0, now, &why);
	/* Handlers may have failed it meanwhile. */
	if (!code && !c->why.code && c->stripes)
		code = dl_stripes_turn(c, fd, revents, now, &why);
	if (c->config.reads && dl_rate_next(c->config.reads) > now)
		c->rests = dl_rate_next(c->config.reads);
	if (!c->why.code && code) {
		why.code = code;
		c->why = why;
	}
	if (c->why.code && e)
		*e = c->why;
	return c->why.code;
}

int dl_conn_work(
	struct dl_conn *c, short revents, int64_t now, struct dl_err *e)
{
	return dl_conn_turn(c, c->main.fd, revents, now, e);
}

void dl_conn_flush(struct dl_conn *c, int64_t now)
{
	struct dl_err why = {0};

	if (!c->why.code && !is_full(c) && dl_conn_write(c, now, &why))
		c->why = why;
}

void dl_conn_send(struct dl_conn *c, const struct dl_message *m)
{
	if (c->why.code || c->finish)
		return;
	dl_message_pack(m, &c->control);
	if (c->control.len - c->out.control_at > c->config.queue)
		dl_fail(&c->why, DL_TEMPFAIL,
			"does not read: %zu bytes of messages wait",
			c->control.len - c->out.control_at);
}

void dl_conn_finish(struct dl_conn *c, int64_t deadline)
{
	if (!c->finish)
		c->finish = deadline > 0 ? deadline : 1;
	/* When striped, the peer still has to say what it has received. */
	c->main.deaf = !c->stripes;
}
