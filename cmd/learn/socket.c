#include "cmd/learn/uplink.h"

#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/learn/identity.h"
#include "cmd/learn/learner.h"

/* A syncer is gone when so many heartbeats, ours or its own, are missing. */
enum { BEATS_MISSED = 5 };
/* No syncer reads more in a hello; who says none is sent all. */
enum { VERSIONS_MAX = 3072 };
enum { SH_CANNOT_RUN = 126, SH_NOT_FOUND = 127 };

static const int64_t syncer_beat = 2 * DL_SECOND;
static const int64_t retry_min = DL_SECOND / 5, retry_max = 15 * DL_SECOND;
static const int64_t hurry_max = DL_SECOND; /* of a learner that drains */
static const int64_t last_words = 5 * DL_SECOND;

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e);
static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e);
static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e);

static const struct dl_conn_handlers handlers = {
	on_message, on_begin, on_whole};

static int fragment_ok(const struct learner *l, const struct dl_message *m)
{
	return l->uplink.welcomed && m->fragment < l->layout.fragments;
}

/* What comes too late for its round is not dropped then. */
static void say_leaving(struct learner *l)
{
	struct dl_message m = {.kind = DL_MSG_END};

	dl_conn_send(&l->uplink.conn, &m);
}

static int on_welcome(
	struct learner *l, const struct dl_message *m, struct dl_err *e)
{
	struct uplink *up = &l->uplink;
	struct dl_learn_event ev = {.kind = DL_LE_WELCOME,
		.now = dl_now(),
		.clock = m->clock,
		.versions = m->versions,
		.origins = m->origins,
		.seqs = m->seqs};
	int code;

	if (up->welcomed)
		return dl_fail(e, DL_PROTOCOL, "welcome comes twice");
	if (l->core && identity_take(l, m, e))
		return e->code;
	if (!l->core) {
		code = learner_begin(l, m, e);
		up->fatal = code;
		if (code)
			return code;
	}
	if (m->fragments != l->layout.fragments || strcmp(m->run, l->run) != 0)
		return dl_fail(e, DL_PROTOCOL, "now serves another run");
	if (drain_asked(l))
		say_leaving(l);
	weights_expect_updates(&l->weights, strcmp(m->global, "f32") != 0);
	weights_rename(&l->weights, m->origins, m->versions);
	l->epoch = m->epoch;
	up->welcomed = 1;
	up->failures = 0;
	up->away_at = INT64_MAX;
	up->conn.config.data.data = UINT64_MAX;
	if (streams_begin(l, m, e))
		return e->code;
	cmd_debug("welcome to run %s, epoch %llu, clock %llu", l->run,
		(unsigned long long)m->epoch, (unsigned long long)m->clock);
	learner_event(l, &ev);
	return 0;
}

static int on_error(
	struct learner *l, const struct dl_message *m, struct dl_err *e)
{
	char text[400];

	dl_scrub(text, sizeof text, m->text, m->text_n);
	if (client_is_final(m->code))
		l->uplink.fatal = m->code;
	return dl_fail(e, m->code, "%s", text);
}

static void on_bye(struct learner *l, const struct dl_message *m)
{
	struct dl_learn_event ev = {.kind = DL_LE_BYE, .now = dl_now()};

	cmd_debug("the syncer says bye: %s", dl_bye_name(m->bye));
	if (m->bye != DL_BYE_DONE)
		return;
	l->uplink.ended = 1;
	if (l->core)
		learner_event(l, &ev);
	else
		learner_finish(l);
}

static void say_refused(struct learner *l, const struct dl_message *m)
{
	/* What is barred will be so in every round. */
	int again = m->refusal == DL_REFUSED_BARRED && l->uplink.barred++;

	(again ? cmd_debug : cmd_warn)("push %llu of fragment %u was refused: "
				       "%s",
		(unsigned long long)m->seq, m->fragment,
		dl_refusal_name(m->refusal));
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct learner *l = ctx;
	struct dl_learn_event ev = {.now = dl_now(),
		.fragment = m->fragment,
		.step = m->step,
		.seq = m->seq,
		.taken = m->taken};

	(void)c;
	switch (m->kind) {
	case DL_MSG_WELCOME:
		return on_welcome(l, m, e);
	case DL_MSG_ERROR:
		return on_error(l, m, e);
	case DL_MSG_BYE:
		on_bye(l, m);
		return 0;
	case DL_MSG_PEERS:
		return 0;
	case DL_MSG_GUEST:
		serving_guest(l, m, dl_now());
		return 0;
	case DL_MSG_OPEN:
		ev.kind = DL_LE_OPEN;
		cmd_debug("fragment %u is due: step %llu", m->fragment,
			(unsigned long long)m->step);
		break;
	case DL_MSG_TAKEN:
		ev.kind = DL_LE_TAKEN;
		if (m->taken == DL_TAKEN_REFUSED)
			say_refused(l, m);
		drain_taken(l, m);
		break;
	case DL_MSG_END:
		ev.kind = DL_LE_END;
		break;
	default:
		return dl_fail(e, DL_PROTOCOL, "%s is not for learners",
			dl_message_kind_name(m->kind));
	}
	if (!fragment_ok(l, m))
		return dl_fail(e, DL_PROTOCOL, "%s: no such fragment",
			dl_message_kind_name(m->kind));
	learner_event(l, &ev);
	return 0;
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct learner *l = ctx;

	(void)c;
	if (m->kind != DL_MSG_GLOBAL || !fragment_ok(l, m))
		return dl_fail(e, DL_PROTOCOL, "%s of no use",
			dl_message_kind_name(m->kind));
	return coming_begin(l, m, h, dest, e);
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	(void)c;
	(void)h;
	(void)dest;
	(void)e;
	coming_whole(ctx, m);
	return 0;
}

/* All that are known here, with spaces between. */
static void put_codecs(struct dl_buf *out)
{
	for (int i = 0; i < DL_CODECS; i++)
		dl_buf_printf(out, "%s%s", i ? " " : "",
			dl_codec_name((enum dl_codec)i));
}

static void hello(struct learner *l)
{
	uint32_t fragments = l->core ? l->layout.fragments : 0;
	struct dl_version *versions =
		dl_alloc_array(fragments ? fragments : 1, sizeof *versions);
	struct dl_buf codecs = DL_BUF_INIT;
	struct dl_message m = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_LEARNER,
		.run = l->run,
		.name = l->name,
		.instance = l->instance,
		.layout = l->core ? l->layout.hash : "",
		.serve = serving_offer(l),
		.fragments = fragments,
		.versions = versions};
	struct dl_learn_info info;

	if (l->options->data.streams > 1) {
		m.streams = l->options->data.streams;
		m.window = l->options->data.window;
	}

	if (l->core) {
		dl_learn_info(l->core, &info);
		m.clock = info.clock;
		m.steps = info.steps;
		m.tokens = info.tokens;
		for (uint32_t p = 0; p < fragments; p++)
			versions[p] = dl_learn_version(l->core, p);
	}
	if (!l->core)
		donated_hello(l, &m);
	if (m.fragments > VERSIONS_MAX)
		m.fragments = 0;
	put_codecs(&codecs);
	m.codecs = dl_buf_cstr(&codecs);
	dl_conn_send(&l->uplink.conn, &m);
	dl_buf_free(&codecs);
	free(versions);
}

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
	c.handlers = &handlers;
	l->uplink.at = *address;
	l->rate.bytes = o->data.rate;
	dl_conn_init(&l->uplink.conn, fd, &c, now);
	if (drain_asked(l))
		dl_conn_smallest_first(&l->uplink.conn);
	l->uplink.open = 1;
	hello(l);
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
