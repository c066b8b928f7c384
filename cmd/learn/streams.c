#include "cmd/learn/streams.h"

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

static const int64_t retry_min = DL_SECOND / 5, retry_max = 15 * DL_SECOND;

int streams_begin(
	struct learner *l, const struct dl_message *welcome, struct dl_err *e)
{
	const struct data_options *o = &l->options->data;
	struct streams *s = &l->uplink.streams;

	s->failures = 0;
	s->retry_at = 0;
	if (welcome->streams < 2)
		return 0;
	if (welcome->streams > o->streams || welcome->window > o->window ||
		welcome->window < DL_WINDOW_MIN)
		return dl_fail(e, DL_PROTOCOL,
			"grants %llu streams and a window of %llu bytes",
			(unsigned long long)welcome->streams,
			(unsigned long long)welcome->window);
	dl_conn_stripe(
		&l->uplink.conn, (unsigned)welcome->streams, welcome->window);
	return 0;
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	char text[400];

	(void)ctx;
	if (m->kind == DL_MSG_ERROR)
		return dl_fail(e, m->code, "%s",
			dl_scrub(text, sizeof text, m->text, m->text_n));
	if (m->kind != DL_MSG_ATTACHED)
		return dl_fail(e, DL_PROTOCOL, "%s is not for streams",
			dl_message_kind_name(m->kind));
	dl_conn_offer(c);
	return 0;
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)h;
	(void)dest;
	return dl_fail(e, DL_PROTOCOL, "%s before a stream is attached",
		dl_message_kind_name(m->kind));
}

static const struct dl_conn_handlers handlers = {on_message, on_begin, NULL};

static void failed(struct learner *l, const struct dl_err *why, int64_t now)
{
	struct streams *s = &l->uplink.streams;
	int64_t pause = s->failures < 7 ? retry_min << s->failures : retry_max;

	cmd_debug("a stream is not there: %s", why->text);
	s->retry_at = now + pause;
	s->failures++;
}

static void turn(void *ctx, int fd, short revents)
{
	struct learner *l = ctx;
	struct streams *s = &l->uplink.streams;
	int64_t now = dl_now();
	struct dl_err e;

	if (!dl_conn_turn(&s->next, fd, revents, now, &e))
		return;
	dl_conn_release(&s->next);
	s->open = 0;
	failed(l, &e, now);
}

static void dial(struct learner *l, int64_t now)
{
	struct streams *s = &l->uplink.streams;
	struct dl_handshake_config session;
	struct dl_conn_config c;
	struct dl_message m = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_STREAM,
		.run = l->run,
		.name = l->name,
		.instance = l->instance};
	struct dl_child none;
	struct dl_err e;
	int fd;

	if (dl_address_connect(
		    &l->uplink.at, l->options->insecure, &fd, &none, &e)) {
		failed(l, &e, now);
		return;
	}
	uplink_config(l, &c, &session);
	c.handlers = &handlers;
	dl_conn_init(&s->next, fd, &c, now);
	s->open = 1;
	dl_conn_send(&s->next, &m);
}

void streams_work(struct learner *l, int64_t now)
{
	struct streams *s = &l->uplink.streams;

	if (!s->open && dl_conn_missing(&l->uplink.conn) && now >= s->retry_at)
		dial(l, now);
	if (s->open)
		turn(l, -1, 0);
	if (!s->open)
		return;
	if (dl_conn_offered(&s->next) && dl_conn_missing(&l->uplink.conn)) {
		dl_conn_adopt(&l->uplink.conn, &s->next, now);
		s->open = 0;
		s->failures = 0;
		s->retry_at = now;
		return;
	}
	dl_conn_watch(&s->next, &l->loop, turn, l);
}

int64_t streams_wake(const struct learner *l)
{
	const struct streams *s = &l->uplink.streams;

	if (s->open)
		return dl_conn_deadline(&s->next);
	return dl_conn_missing(&l->uplink.conn) ? s->retry_at : INT64_MAX;
}

void streams_end(struct learner *l)
{
	if (l->uplink.streams.open)
		dl_conn_release(&l->uplink.streams.next);
	l->uplink.streams.open = 0;
}
