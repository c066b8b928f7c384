#include "cmd/learn/uplink.h"

#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/learn/hear.h"
#include "cmd/learn/learner.h"
#include "cmd/learn/say.h"

/* A syncer is gone when so many heartbeats, ours or its own, are missing. */
enum { BEATS_MISSED = 5 };

enum { SH_CANNOT_RUN = 126, SH_NOT_FOUND = 127 };

static const int64_t syncer_beat = 2 * DL_SECOND;
static const int64_t retry_min = DL_SECOND / 5, retry_max = 15 * DL_SECOND;
static const int64_t hurry_max = DL_SECOND; /* of a learner that drains */
static const int64_t last_words = 5 * DL_SECOND;

/* Doubles with each failure; learners that lost their syncer together come
 * back one by one. */
static int64_t retry_pause(const struct learner *l)
{
	unsigned n = l->uplink.failures;
	int64_t pause = n < 8 ? retry_min << n : retry_max;
	int64_t most = drain_asked(l) ? hurry_max : retry_max;
	struct dl_rng rng = {l->instance, n};

	if (pause > most)
		pause = most;
	return (int64_t)((0.5 + 0.5 * dl_rng_uniform(&rng)) * (double)pause);
}

/* Commands that will not do better next time: of sh, and of dl-sync attach. */
static int is_useless(const struct learner *l)
{
	int status = dl_child_exit(&l->uplink.child);

	return !l->core && (status == DL_USAGE || status == SH_CANNOT_RUN ||
				   status == SH_NOT_FOUND);
}

/* There is no connection, for that reason: the end, or one more try. */
static void try_again(struct learner *l, struct dl_err *why, int64_t now)
{
	struct uplink *up = &l->uplink;

	if (up->fatal) {
		learner_fail(l, why);
		return;
	}
	if (up->parting || up->ended)
		return;
	if (!up->failures) {
		cmd_warn("%s: trying again", why->text);
		up->away_at = now;
	}
	up->retry_at = now + retry_pause(l);
	up->failures++;
}

/* The connection is closed; how its command ended may say more. */
static void end_child(struct learner *l, int64_t now)
{
	struct uplink *up = &l->uplink;
	struct dl_err e = up->why;
	char address[DL_ADDRESS_MAX];

	if (!dl_child_end(&up->child, now))
		return;
	up->why.code = 0;
	dl_child_explain(&up->child, &e);
	if (is_useless(l))
		up->fatal = DL_UNAVAILABLE;
	dl_at(&e, "%s", dl_address_show(address, &l->options->address));
	try_again(l, &e, now);
}

static void lost(struct learner *l, const struct dl_err *why, int64_t now)
{
	struct uplink *up = &l->uplink;
	struct dl_learn_event ev = {.kind = DL_LE_LOST, .now = now};
	int welcomed = up->welcomed;

	/* Who was never a syncer, or lets us in, will not change. Later on
	 * what is said before a session is anybody's word. */
	if (!l->core && client_is_final(why->code))
		up->fatal = why->code;
	up->bytes_in += dl_conn_bytes_in(&up->conn);
	up->bytes_out += dl_conn_bytes_out(&up->conn);
	streams_end(l);
	dl_conn_release(&up->conn);
	coming_lost(l);
	weights_forget_asked(&l->weights);
	up->open = up->welcomed = 0;
	up->why = *why;
	if (welcomed)
		learner_event(l, &ev);
	end_child(l, now);
}

static void turn(void *ctx, int fd, short revents)
{
	struct learner *l = ctx;
	int64_t now = dl_now();
	struct dl_err e;

	if (dl_conn_turn(&l->uplink.conn, fd, revents, now, &e))
		lost(l, &e, now);
}

void uplink_config(struct learner *l, struct dl_conn_config *c,
	struct dl_handshake_config *session)
{
	const struct dl_address *a = &l->options->address;
	int64_t beat = l->options->heartbeat_ns;

	/* Of any run: hello names it, and the answer is the syncer's own. */
	*session = (struct dl_handshake_config){a->own, a->key, ""};
	*c = (struct dl_conn_config){.ctx = l,
		.control = {16 << 20, 16 << 20},
		.data = {16 << 20, 0},
		.queue = DL_CONN_QUEUE,
		.beat_ns = beat,
		.silence_ns = BEATS_MISSED *
			      (beat > syncer_beat ? beat : syncer_beat),
		.session = a->own ? session : NULL,
		.rate = &l->rate};
}

static void dial(
	struct learner *l, const struct dl_address *address, int64_t now)
{
	const struct learn_options *o = l->options;
	struct dl_handshake_config session;
	struct dl_conn_config c;
	struct dl_err e;
	int fd, code = dl_address_connect(
			address, o->insecure, &fd, &l->uplink.child, &e);

	if (code) {
		l->uplink.fatal = code == DL_USAGE ? code : 0;
		try_again(l, &e, now);
		return;
	}
	uplink_config(l, &c, &session);
	c.handlers = &hear_handlers;
	l->uplink.at = *address;
	l->rate.bytes = o->data.rate;
	dl_conn_init(&l->uplink.conn, fd, &c, now);
	if (drain_asked(l))
		dl_conn_smallest_first(&l->uplink.conn);
	l->uplink.open = 1;
	say_hello(l);
}

static void look_up(struct dl_errand *errand)
{
	struct lookup *k = (void *)errand;
	unsigned count;

	k->code = dl_address_resolve(&k->learner->options->address, k->nth,
		&k->address, &count, &k->err);
}

static void looked_up(struct dl_errand *errand)
{
	struct lookup *k = (void *)errand;
	struct learner *l = k->learner;

	if (errand->dropped || l->uplink.parting)
		return;
	if (k->code)
		try_again(l, &k->err, dl_now());
	else
		dial(l, &k->address, dl_now());
}

/* Each time anew, since a syncer may have moved, and to the next of its
 * addresses when it could not be reached. */
static void begin(struct learner *l, int64_t now)
{
	const struct dl_address *address = &l->options->address;
	struct uplink *up = &l->uplink;
	struct dl_err e;

	up->retry_at = INT64_MAX;
	if (address->kind != DL_LINK_TCP) {
		dial(l, address, now);
		return;
	}
	if (!up->errands)
		up->errands = dl_errands_new(&l->loop, &e);
	if (!up->errands) {
		try_again(l, &e, now);
		return;
	}
	up->lookup = (struct lookup){.errand = {look_up, looked_up, 0, NULL},
		.learner = l,
		.nth = up->failures};
	dl_errands_add(up->errands, &up->lookup.errand);
}

static void socket_work(struct learner *l, int64_t now)
{
	struct uplink *up = &l->uplink;
	struct dl_err e;

	if (up->why.code)
		end_child(l, now);
	if (!up->open && !up->parting && !up->ended && now >= up->retry_at)
		begin(l, now);
	if (!up->open)
		return;
	if (dl_conn_work(&up->conn, 0, now, &e)) {
		lost(l, &e, now);
		return;
	}
	if (!up->parting)
		streams_work(l, now);
	dl_conn_watch(&up->conn, &l->loop, turn, l);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t socket_wake(const struct learner *l)
{
	const struct uplink *up = &l->uplink;

	if (up->open)
		return least(dl_conn_deadline(&up->conn), streams_wake(l));
	if (up->why.code)
		return up->child.deadline;
	return up->parting || up->ended ? INT64_MAX : up->retry_at;
}

static void socket_release(struct learner *l)
{
	if (l->uplink.open) {
		streams_end(l);
		dl_conn_release(&l->uplink.conn);
		l->uplink.open = 0;
	}
	dl_errands_free(l->uplink.errands);
	dl_child_kill(&l->uplink.child);
}

static void socket_hurry(struct learner *l, int64_t now)
{
	struct uplink *up = &l->uplink;

	if (up->welcomed)
		say_leaving(l);
	if (up->open)
		dl_conn_smallest_first(&up->conn);
	else if (up->retry_at != INT64_MAX)
		up->retry_at = now;
}

static void socket_send(struct learner *l, const struct dl_message *m)
{
	if (l->uplink.welcomed)
		dl_conn_send(&l->uplink.conn, m);
}

static void sent(void *ctx, int whole)
{
	struct push *push = ctx;

	(void)whole;
	push->sending = 0;
	weights_drop(push->owner, push);
}

static void socket_push(struct learner *l, struct push *push)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;

	if (!l->uplink.welcomed || push->sending) {
		weights_drop(&l->weights, push);
		return;
	}
	uplink_push_record(l, push, &w);
	dl_writer_finish(&w, &head, NULL);
	dl_writer_release(&w);
	push->sending = 1;
	dl_conn_send_data(
		&l->uplink.conn, 0, &head, push->data, push->bytes, sent, push);
}

static void socket_part(struct learner *l, int64_t now)
{
	struct dl_message m = {.kind = DL_MSG_BYE, .bye = DL_BYE_LEAVING};
	struct uplink *up = &l->uplink;

	if (up->parting)
		return;
	up->parting = 1;
	if (!up->open)
		return;
	streams_end(l);
	socket_send(l, &m);
	dl_conn_finish(&up->conn, now + last_words);
}

static int socket_closed(const struct learner *l)
{
	return !l->uplink.open && !l->uplink.child.pid;
}

const struct uplink_carrier uplink_socket = {socket_work, socket_wake,
	socket_hurry, socket_send, socket_push, socket_part, socket_closed,
	socket_release};
