#include "cmd/serve/peer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/server.h"

static const int64_t hello_time = 10 * DL_SECOND;
static const int64_t probe_time = 2 * DL_SECOND + DL_SECOND / 2;
static const int64_t beat_time = 2 * DL_SECOND;
static const int64_t last_words = 5 * DL_SECOND;
static const int64_t observer_time = 600 * DL_SECOND;

/* Strangers are told little and may say little. */
static const struct dl_limits hello_limits = {65536, 1 << 20};

static void event_of(const struct peer *peer, enum dl_sync_event_kind kind,
	struct dl_sync_event *ev)
{
	*ev = (struct dl_sync_event){.kind = kind,
		.now = dl_now(),
		.learner = peer->name,
		.instance = peer->instance,
		.loss = NAN};
}

void peer_send_welcome(struct peer *peer, uint64_t clock)
{
	struct server *s = peer->server;
	uint32_t n = s->layout->fragments;
	struct dl_version *versions = dl_alloc_array(n, sizeof *versions);
	struct dl_version *origins = dl_alloc_array(n, sizeof *origins);
	uint64_t *seqs = dl_alloc_array(n, sizeof *seqs);
	struct dl_message m = {.kind = DL_MSG_WELCOME,
		.run = s->run->name,
		.epoch = dl_sync_epoch(s->core),
		.clock = clock,
		.h = s->run->h,
		.tau = s->options->config.tau,
		.apply = s->options->apply,
		.wait = s->options->wait,
		.text = dl_buf_cstr(&s->layout_text),
		.fragments = n,
		.versions = versions,
		.origins = origins,
		.seqs = seqs};

	for (uint32_t p = 0; p < n; p++) {
		versions[p] = dl_sync_version(s->core, p);
		origins[p] = dl_sync_origin(s->core, p);
		if (peer->state == PEER_LEARNER)
			seqs[p] = dl_sync_taken(
				s->core, peer->name, peer->instance, p);
	}
	dl_conn_send(&peer->conn, &m);
	free(versions);
	free(origins);
	free(seqs);
}

static void values_sent(void *ctx, int whole)
{
	(void)whole;
	values_done(ctx);
}

void peer_send_values(struct peer *peer, uint32_t p, uint64_t step, int final)
{
	struct server *s = peer->server;
	struct dl_message m = {.kind = DL_MSG_GLOBAL,
		.fragment = p,
		.version = dl_sync_version(s->core, p),
		.step = step,
		.final = final,
		.codec = "f32"};
	struct values *v = globals_read(&s->globals, p);
	struct dl_buf head = DL_BUF_INIT;

	dl_message_pack_data(&m, s->layout, &head);
	/* A version that still waits behind others is replaced by a newer. */
	dl_conn_send_data(&peer->conn, p + 1, &head, v->data,
		shelf_bytes(&s->globals.shelf, p), values_sent, v);
}

static void leave(struct peer *peer, int64_t deadline)
{
	peer->state = PEER_LEAVING;
	dl_conn_finish(&peer->conn, deadline);
}

void peer_bye(struct peer *peer, enum dl_bye bye, int64_t now)
{
	struct dl_message m = {.kind = DL_MSG_BYE, .bye = bye};

	dl_conn_send(&peer->conn, &m);
	leave(peer, now + last_words);
}

void peers_bye(
	struct server *s, enum peer_state state, enum dl_bye bye, int64_t now)
{
	for (struct peer *peer = s->peer; peer; peer = peer->next)
		if (peer->state == state && !peer->over)
			peer_bye(peer, bye, now);
}

struct peer *peers_find(
	const struct server *s, const char *name, uint64_t instance)
{
	struct peer *peer = s->peer;

	while (peer && (peer->over || peer->state != PEER_LEARNER ||
			       peer->instance != instance ||
			       strcmp(peer->name, name) != 0))
		peer = peer->next;
	return peer;
}

/* Whoever is known to the core under that name. */
static struct peer *find_holder(const struct server *s, const char *name)
{
	struct peer *peer = s->peer;

	while (peer && (peer->over || peer->state != PEER_LEARNER ||
			       strcmp(peer->name, name) != 0))
		peer = peer->next;
	return peer;
}

/* Its connection is over: the core hears of a learner's. */
static void drop(struct peer *peer, const struct dl_err *why)
{
	struct server *s = peer->server;
	enum peer_state was = peer->state;
	struct dl_sync_event ev;

	if (peer->over)
		return;
	peer->over = 1;
	peer->state = PEER_LEAVING;
	s->bytes_in += peer->conn.bytes_in;
	s->bytes_out += peer->conn.bytes_out;
	dl_loop_remove(&s->loop, peer->conn.fd);
	dl_conn_release(&peer->conn);
	if (peer->coming)
		globals_drop(&s->globals, peer->coming);
	if (was != PEER_LEARNER)
		return;
	cmd_note("%s is gone: %s", peer->name, why->text);
	event_of(peer, DL_EV_LEAVE, &ev);
	server_event(s, &ev);
}

static void admit(struct peer *peer)
{
	struct server *s = peer->server;
	struct dl_sync_event ev;

	peer->state = PEER_LEARNER;
	peer->deadline = INT64_MAX;
	peer->conn.config.silence_ns = s->options->dead_ns;
	peer->conn.config.data.data = UINT64_MAX;
	cmd_note("%s is here (%s)", peer->name, peer->address);
	event_of(peer, DL_EV_JOIN, &ev);
	ev.clock = peer->clock;
	ev.steps = peer->steps;
	ev.tokens = peer->tokens;
	ev.versions = peer->versions;
	server_event(s, &ev);
}

static void refuse(struct peer *peer, int code, const char *text, int64_t now)
{
	struct dl_message m = {
		.kind = DL_MSG_ERROR, .code = code, .text = text};

	cmd_note("%s: refused: %s", peer->address, text);
	dl_conn_send(&peer->conn, &m);
	leave(peer, now + last_words);
}

/* One name, one learner: a new connection of the same process replaces the
 * old; another process has to wait until the old is known to be silent. */
static void claim_name(struct peer *peer, int64_t now)
{
	struct peer *holder = find_holder(peer->server, peer->name);
	struct dl_err why;

	if (holder && holder->instance != peer->instance) {
		peer->state = PEER_WAITING;
		peer->deadline = now + probe_time;
		peer->heard = holder->conn.heard;
		return;
	}
	if (holder) {
		dl_fail(&why, DL_UNAVAILABLE, "connected anew");
		drop(holder, &why);
	}
	admit(peer);
}

/* Has the holder of the name said anything since the newcomer came? */
static void judge_probe(struct peer *peer, int64_t now)
{
	struct peer *holder = find_holder(peer->server, peer->name);
	struct dl_err why;
	char text[480];

	if (holder && holder->conn.heard > peer->heard) {
		snprintf(text, sizeof text, "%s is taken by %s", peer->name,
			holder->address);
		refuse(peer, DL_NOPERM, text, now);
		return;
	}
	if (holder && now < peer->deadline)
		return;
	if (holder) {
		dl_fail(&why, DL_UNAVAILABLE, "silent, and replaced");
		drop(holder, &why);
	}
	admit(peer);
}

static int check_hello(
	const struct server *s, const struct dl_message *m, struct dl_err *e)
{
	if (*m->run && strcmp(m->run, s->run->name) != 0)
		return dl_fail(e, DL_DATA, "this is run %s", s->run->name);
	if (*m->layout && strcmp(m->layout, s->layout->hash) != 0)
		return dl_fail(e, DL_DATA, "this run has another layout");
	if (m->fragments && m->fragments != s->layout->fragments)
		return dl_fail(e, DL_DATA, "this run has %u fragments",
			s->layout->fragments);
	return 0;
}

static void begin_observer(struct peer *peer, int64_t now)
{
	struct server *s = peer->server;

	peer->state = PEER_OBSERVER;
	peer_send_welcome(peer, dl_sync_clock(s->core));
	for (uint32_t p = 0; p < s->layout->fragments; p++)
		peer_send_values(peer, p, dl_sync_clock(s->core), 0);
	leave(peer, now + observer_time);
}

static int on_hello(
	struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	struct server *s = peer->server;
	uint32_t n = s->layout->fragments;
	int64_t now = dl_now();

	if (peer->state != PEER_STRANGER)
		return dl_fail(e, DL_PROTOCOL, "hello comes twice");
	if (check_hello(s, m, e)) {
		refuse(peer, e->code, e->text, now);
		return 0;
	}
	peer->deadline = INT64_MAX;
	if (m->role == DL_ROLE_OBSERVER) {
		begin_observer(peer, now);
	} else if (m->role == DL_ROLE_ENDER) {
		peer->state = PEER_ENDER;
	} else {
		strcpy(peer->name, m->name);
		peer->instance = m->instance;
		peer->clock = m->clock;
		peer->steps = m->steps;
		peer->tokens = m->tokens;
		peer->versions = dl_alloc_array(n, sizeof *peer->versions);
		if (m->fragments)
			memcpy(peer->versions, m->versions,
				n * sizeof *peer->versions);
		claim_name(peer, now);
	}
	return 0;
}

/* What a learner says becomes an event of the core. */
static int on_learner(
	struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	struct dl_sync_event ev;

	event_of(peer, DL_EV_TIME, &ev);
	ev.fragment = m->fragment;
	ev.clock = m->clock;
	ev.steps = m->steps;
	ev.tokens = m->tokens;
	ev.loss = m->loss;
	ev.version = m->version;
	switch (m->kind) {
	case DL_MSG_STEP:
		ev.kind = DL_EV_STEP;
		break;
	case DL_MSG_APPLIED:
		ev.kind = DL_EV_APPLIED;
		break;
	case DL_MSG_WANT:
		ev.kind = DL_EV_WANT;
		break;
	case DL_MSG_END:
		ev.kind = DL_EV_DRAINED;
		break;
	case DL_MSG_BYE:
		return dl_fail(e, DL_UNAVAILABLE, "said bye");
	default:
		return dl_fail(e, DL_PROTOCOL, "%s is not for syncers",
			dl_message_kind_name(m->kind));
	}
	server_event(peer->server, &ev);
	return 0;
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct peer *peer = ctx;
	struct dl_sync_event ev;

	(void)c;
	if (m->kind == DL_MSG_HELLO)
		return on_hello(peer, m, e);
	if (peer->state == PEER_LEARNER)
		return on_learner(peer, m, e);
	if (peer->state == PEER_ENDER && m->kind == DL_MSG_END) {
		cmd_note("%s asks for the end of the run", peer->address);
		event_of(peer, DL_EV_END, &ev);
		server_event(peer->server, &ev);
		return 0;
	}
	if (m->kind == DL_MSG_BYE)
		return dl_fail(e, DL_UNAVAILABLE, "said bye");
	return dl_fail(e, DL_PROTOCOL, "%s before welcome",
		dl_message_kind_name(m->kind));
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct peer *peer = ctx;
	struct server *s = peer->server;

	(void)c;
	if (m->kind != DL_MSG_PUSH || peer->state != PEER_LEARNER)
		return dl_fail(e, DL_PROTOCOL, "%s from one who is no learner",
			dl_message_kind_name(m->kind));
	if (m->fragment >= s->layout->fragments || strcmp(m->codec, "f32") != 0)
		return dl_fail(e, DL_PROTOCOL, "push of fragment %u in %s",
			m->fragment, m->codec);
	if (dl_layout_check_record(s->layout, m->fragment, h, e))
		return e->code;
	peer->coming = globals_push(&s->globals, m->fragment);
	*dest = peer->coming->delta;
	return 0;
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct peer *peer = ctx;
	struct push *push = peer->coming;
	struct dl_sync_event ev;

	(void)c;
	(void)h;
	(void)dest;
	(void)e;
	peer->coming = NULL;
	globals_arrived(&peer->server->globals, push);
	event_of(peer, DL_EV_PUSH, &ev);
	ev.fragment = m->fragment;
	ev.seq = m->seq;
	ev.step = m->step;
	ev.base = m->base;
	ev.steps = m->steps;
	ev.tokens = m->tokens;
	ev.norm = push->norm;
	ev.push = push->id;
	server_event(peer->server, &ev);
	return 0;
}

static const struct dl_conn_handlers handlers = {
	on_message, on_begin, on_whole};

static void work(struct peer *peer, short revents, int64_t now)
{
	struct dl_err e;

	if (!peer->over && dl_conn_work(&peer->conn, revents, now, &e))
		drop(peer, &e);
}

static void turn(void *ctx, int fd, short revents)
{
	(void)fd;
	work(ctx, revents, dl_now());
}

void peers_accept(struct server *s, int listener, int64_t now)
{
	struct dl_conn_config c = {.handlers = &handlers,
		.control = hello_limits,
		.data = {16 << 20, 0},
		.queue = DL_CONN_QUEUE + 2 * s->layout_text.len,
		.beat_ns = beat_time};
	struct dl_err e;
	int fd;

	while (!dl_address_accept(listener, &fd, &e) && fd >= 0) {
		struct peer *peer = dl_alloc(sizeof *peer);

		peer->server = s;
		peer->deadline = now + hello_time;
		dl_address_peer(peer->address, fd);
		c.ctx = peer;
		dl_conn_init(&peer->conn, fd, &c, now);
		peer->next = s->peer;
		s->peer = peer;
	}
}

static void free_over(struct server *s)
{
	struct peer **at = &s->peer;

	while (*at) {
		struct peer *peer = *at;

		if (!peer->over) {
			at = &peer->next;
			continue;
		}
		*at = peer->next;
		free(peer->versions);
		free(peer);
	}
}

void peers_work(struct server *s, int64_t now)
{
	struct dl_err why;

	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		if (peer->state == PEER_WAITING && !peer->over)
			judge_probe(peer, now);
		if (peer->state == PEER_STRANGER && now >= peer->deadline) {
			dl_fail(&why, DL_UNAVAILABLE, "said nothing");
			drop(peer, &why);
		}
	}
	/* Last, so that what all of the above has queued is on its way. */
	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		work(peer, 0, now);
		if (!peer->over)
			dl_loop_set(&s->loop, peer->conn.fd,
				dl_conn_events(&peer->conn), turn, peer);
	}
	free_over(s);
}

int64_t peers_wake(const struct server *s)
{
	int64_t wake = INT64_MAX;

	for (const struct peer *peer = s->peer; peer; peer = peer->next) {
		int64_t at = dl_conn_deadline(&peer->conn);

		if (at < wake)
			wake = at;
		if ((peer->state == PEER_STRANGER ||
			    peer->state == PEER_WAITING) &&
			peer->deadline < wake)
			wake = peer->deadline;
	}
	return wake;
}

void peers_free(struct server *s)
{
	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		if (peer->over)
			continue;
		peer->over = 1;
		dl_loop_remove(&s->loop, peer->conn.fd);
		dl_conn_release(&peer->conn);
	}
	free_over(s);
}
