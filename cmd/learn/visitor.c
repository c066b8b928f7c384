#include "cmd/learn/visitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

enum { STRANGERS = 16 }; /* no guests yet, or refused */

/* A guest's name and key may still be on their way from the syncer. */
static const int64_t grace = 2 * DL_SECOND;
static const int64_t wait_time = 60 * DL_SECOND; /* for an export */
/* Takes nothing; the second while others wait for a newer state. */
static const int64_t idle_time = 30 * DL_SECOND, slow_time = 5 * DL_SECOND;
static const int64_t hello_time = DL_DOOR_TIME * DL_SECOND;
static const int64_t last_words = 5 * DL_SECOND;
static const int64_t beat_time = 2 * DL_SECOND, silence = 10 * DL_SECOND;

static const struct dl_limits words = {16384, 49152};
static const struct dl_limits nothing = {65536, 0};
static const size_t queue = 1 << 20;

/* Strangers can fill the log no faster than this. */
static const struct dl_allowance lines = {20, DL_SECOND};

static void note(struct visitor *v, const char *text)
{
	if (dl_bucket_take(&v->learner->serving.lines, lines, dl_now()))
		cmd_note("%s%s%s %s", v->name, *v->name ? " at " : "",
			v->address, text);
}

static void drop(struct visitor *v, const struct dl_err *why)
{
	char text[600];

	if (v->over)
		return;
	if (v->state == VISITOR_TAKING)
		v->learner->serving.file.readers--;
	if (v->state != VISITOR_LEAVING) {
		snprintf(text, sizeof text, "is gone: %s", why->text);
		note(v, text);
	}
	v->over = 1;
	give_free(v->give);
	v->give = NULL;
	dl_conn_release(&v->conn);
}

/* What is queued still goes out, and it has no place any more. */
static void leave(struct visitor *v, int64_t now)
{
	if (v->state == VISITOR_TAKING)
		v->learner->serving.file.readers--;
	give_free(v->give);
	v->give = NULL;
	v->state = VISITOR_LEAVING;
	dl_conn_finish(&v->conn, now + last_words);
}

static void refuse(struct visitor *v, int code, const char *text, int64_t now)
{
	struct dl_message m = {
		.kind = DL_MSG_ERROR, .code = code, .text = text};
	char line[600];

	snprintf(line, sizeof line, "is refused: %s", text);
	note(v, line);
	dl_conn_send(&v->conn, &m);
	leave(v, now);
}

static size_t count(const struct learner *l, int state)
{
	size_t n = 0;

	for (const struct visitor *v = l->serving.visitor; v; v = v->next)
		n += !v->over && (int)v->state == state;
	return n;
}

/* One who lost its connection, and may not have been missed yet; or two of one
 * key, of which the first hears of it, else both would come again and again. */
static void replace(struct visitor *v, int64_t now)
{
	const unsigned char *key = dl_conn_peer(&v->conn);

	for (struct visitor *o = v->learner->serving.visitor; o; o = o->next) {
		if (o == v || o->over ||
			(o->state != VISITOR_WAITING &&
				o->state != VISITOR_TAKING))
			continue;
		if (!memcmp(dl_conn_peer(&o->conn), key, DL_KEY))
			refuse(o, DL_NOPERM, "another with this key has come",
				now);
	}
}

/* Is its key that of a guest by now? */
static void judge(struct visitor *v, int64_t now)
{
	struct learner *l = v->learner;
	const struct guest *guest =
		guests_find(&l->serving.guests, dl_conn_peer(&v->conn), now);

	if (!guest && now >= v->deadline)
		refuse(v, DL_NOPERM, "the syncer has not named this key", now);
	if (!guest)
		return;
	strcpy(v->name, guest->name);
	replace(v, now);
	if (count(l, VISITOR_WAITING) + count(l, VISITOR_TAKING) >=
		l->options->serve_max) {
		refuse(v, DL_TEMPFAIL, "serves as many as it will", now);
		return;
	}
	v->state = VISITOR_WAITING;
	v->deadline = now + wait_time;
}

static int on_hello(
	struct visitor *v, const struct dl_message *m, struct dl_err *e)
{
	const struct learner *l = v->learner;
	int64_t now = dl_now();

	if (v->state != VISITOR_STRANGER)
		return dl_fail(e, DL_PROTOCOL, "hello comes twice");
	if (m->role != DL_ROLE_JOINER) {
		refuse(v, DL_PROTOCOL, "this is a learner, for joiners only",
			now);
	} else if (*m->run && strcmp(m->run, l->run) != 0) {
		refuse(v, DL_DATA, "trains in another run", now);
	} else if (*m->layout && strcmp(m->layout, l->layout.hash) != 0) {
		refuse(v, DL_DATA, "its run has another layout", now);
	} else {
		v->clock = m->clock;
		v->state = VISITOR_UNNAMED;
		v->deadline = now + grace;
		judge(v, now);
	}
	return 0;
}

static void on_bye(struct visitor *v)
{
	char text[100], size[DL_HUMAN], time[DL_HUMAN];
	int64_t now = dl_now();

	if (v->state == VISITOR_TAKING) {
		snprintf(text, sizeof text, "has taken %s in %s",
			dl_human_size(size, give_sent(v->give)),
			dl_human_duration(time, now - v->came));
		note(v, text);
	}
	leave(v, now);
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct visitor *v = ctx;

	(void)c;
	if (m->kind == DL_MSG_HELLO)
		return on_hello(v, m, e);
	if (m->kind == DL_MSG_BYE) {
		on_bye(v);
		return 0;
	}
	if (m->kind == DL_MSG_FETCH && v->state == VISITOR_TAKING)
		return give_fetch(v->give, m, e);
	return dl_fail(e, DL_PROTOCOL, "%s out of turn",
		dl_message_kind_name(m->kind));
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)h;
	(void)dest;
	return dl_fail(e, DL_PROTOCOL, "%s is not for donors",
		dl_message_kind_name(m->kind));
}

static const struct dl_conn_handlers handlers = {on_message, on_begin, NULL};

void visitor_enter(struct learner *l, int fd, int64_t now)
{
	struct dl_handshake_config session = {
		l->serving.address.own, NULL, l->run};
	struct dl_conn_config c = {.handlers = &handlers,
		.control = words,
		.data = nothing,
		.queue = queue,
		.beat_ns = beat_time,
		.silence_ns = silence,
		.session = &session,
		.rate = &l->serving.rate};
	struct visitor *v = dl_alloc(sizeof *v);

	v->learner = l;
	v->deadline = now + hello_time;
	dl_address_peer(v->address, fd);
	c.ctx = v;
	dl_conn_init(&v->conn, fd, &c, now);
	v->next = l->serving.visitor;
	l->serving.visitor = v;
}

static int is_stranger(const struct visitor *v)
{
	return !v->over && v->state != VISITOR_WAITING &&
	       v->state != VISITOR_TAKING;
}

void visitors_make_room(struct learner *l)
{
	struct visitor *oldest = NULL;
	struct dl_err why;
	size_t n = 0;

	for (struct visitor *v = l->serving.visitor; v; v = v->next)
		if (is_stranger(v)) {
			oldest = v;
			n++;
		}
	if (n < STRANGERS)
		return;
	dl_fail(&why, DL_UNAVAILABLE, "said nothing while others wait");
	drop(oldest, &why);
}

static void begin_giving(struct visitor *v, int64_t now)
{
	struct learner *l = v->learner;
	struct export_file *x = &l->serving.file;
	struct dl_message m = {.kind = DL_MSG_STATE,
		.clock = x->clock,
		.bytes = x->bytes,
		.fragments = l->layout.fragments,
		.versions = x->versions};
	char text[100], size[DL_HUMAN];
	struct dl_err e;

	v->give = give_new(&v->conn, l->serving.errands, x->fd, x->bytes, &e);
	if (!v->give) {
		refuse(v, DL_TEMPFAIL, e.text, now);
		return;
	}
	dl_conn_send(&v->conn, &m);
	x->readers++;
	v->state = VISITOR_TAKING;
	v->moved = v->came = now;
	snprintf(text, sizeof text, "takes the state of clock %llu: %s",
		(unsigned long long)x->clock, dl_human_size(size, x->bytes));
	note(v, text);
}

static void await_state(struct visitor *v, int64_t now)
{
	struct learner *l = v->learner;
	struct export_file *x = &l->serving.file;

	if (x->state == EXPORT_FAILED)
		refuse(v, DL_TEMPFAIL, "cannot serve its state", now);
	else if (x->whole && x->clock >= v->clock)
		begin_giving(v, now);
	else if (now >= v->deadline)
		refuse(v, DL_TEMPFAIL, "has no state of that clock yet", now);
}

/* Something has to go out or be asked for: who takes nothing keeps others from
 * a newer state. */
static void set_deadline(struct visitor *v)
{
	int64_t patience =
		count(v->learner, VISITOR_WAITING) ? slow_time : idle_time;

	v->deadline = v->moved + patience;
}

static void watch_taking(struct visitor *v, int64_t now)
{
	uint64_t out = dl_conn_bytes_out(&v->conn), sent = give_sent(v->give);
	int waits = dl_conn_waiting(&v->conn) != 0;
	struct dl_err e;

	if (give_failed(v->give, &e)) {
		refuse(v, DL_TEMPFAIL, e.text, now);
		return;
	}
	if (sent != v->sent || (waits && out != v->out))
		v->moved = now;
	v->sent = sent;
	v->out = out;
	set_deadline(v);
	if (now < v->deadline)
		return;
	dl_fail(&e, DL_TEMPFAIL, "takes nothing");
	drop(v, &e);
}

static void work_state(struct visitor *v, int64_t now)
{
	struct dl_err e;

	if (v->state == VISITOR_UNNAMED)
		judge(v, now);
	if (v->state == VISITOR_WAITING)
		await_state(v, now);
	if (v->state == VISITOR_TAKING)
		watch_taking(v, now);
	if (v->state != VISITOR_STRANGER || v->over)
		return;
	if (now >= v->deadline)
		dl_fail(&e, DL_UNAVAILABLE, "said nothing");
	else if (v->conn.main.bytes_in > DL_DOOR_BYTES)
		dl_fail(&e, DL_PROTOCOL, "says too much");
	else
		return;
	drop(v, &e);
}

static void turn(void *ctx, int fd, short revents)
{
	struct visitor *v = ctx;
	struct dl_err e;

	if (!v->over && dl_conn_turn(&v->conn, fd, revents, dl_now(), &e))
		drop(v, &e);
}

/* The least clock that somebody waits for: a later one may never come, and then
 * nobody else has to wait for it. */
static void want_state(struct learner *l, int64_t now)
{
	uint64_t clock = UINT64_MAX;
	int waits = 0;

	for (const struct visitor *v = l->serving.visitor; v; v = v->next)
		if (!v->over && v->state == VISITOR_WAITING) {
			waits = 1;
			if (v->clock < clock)
				clock = v->clock;
		}
	if (waits)
		export_want(l, clock, now);
}

static void free_over(struct learner *l)
{
	struct visitor **at = &l->serving.visitor;

	while (*at) {
		struct visitor *v = *at;

		if (!v->over) {
			at = &v->next;
			continue;
		}
		*at = v->next;
		free(v);
	}
}

void visitors_work(struct learner *l, int64_t now)
{
	for (struct visitor *v = l->serving.visitor; v; v = v->next)
		if (!v->over)
			work_state(v, now);
	want_state(l, now);
	for (struct visitor *v = l->serving.visitor; v; v = v->next) {
		turn(v, -1, 0);
		if (!v->over)
			dl_conn_watch(&v->conn, &l->loop, turn, v);
	}
	free_over(l);
}

int64_t visitors_wake(const struct learner *l)
{
	int64_t wake = INT64_MAX;

	for (const struct visitor *v = l->serving.visitor; v; v = v->next) {
		int64_t at = dl_conn_deadline(&v->conn);

		if (v->state != VISITOR_LEAVING && v->deadline < at)
			at = v->deadline;
		if (at < wake)
			wake = at;
	}
	return wake;
}

void visitors_free(struct learner *l)
{
	struct dl_err why;

	dl_fail(&why, DL_UNAVAILABLE, "this learner ends");
	for (struct visitor *v = l->serving.visitor; v; v = v->next)
		drop(v, &why);
	free_over(l);
}
