#include "cmd/serve/peer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/copy.h"
#include "cmd/serve/hear.h"
#include "cmd/serve/hello.h"
#include "cmd/serve/observe.h"
#include "cmd/serve/server.h"
#include "link/key.h"

static const int64_t hello_time = DL_DOOR_TIME * DL_SECOND;
static const int64_t beat_time = 2 * DL_SECOND;
static const int64_t last_words = 5 * DL_SECOND;

/* Strangers are told little, and may say little. */
static const struct dl_limits hello_limits = {16384, 49152};
static const struct dl_limits nothing = {65536, 0};
enum { ACCEPTS = 64 }; /* at once, so that others get a turn */

void peer_event(const struct peer *peer, enum dl_sync_event_kind kind,
	struct dl_sync_event *ev)
{
	*ev = (struct dl_sync_event){.kind = kind,
		.now = dl_now(),
		.learner = peer->name,
		.instance = peer->instance,
		.loss = NAN};
}

struct peer *peers_find_owner(const struct peer *stream)
{
	const unsigned char *key = dl_conn_peer(&stream->conn), *other;
	struct peer *owner =
		peers_find(stream->server, stream->name, stream->instance);

	other = owner ? dl_conn_peer(&owner->conn) : NULL;
	if (!owner || !key != !other ||
		(key && memcmp(key, other, DL_KEY) != 0))
		return NULL;
	return owner;
}

/* Grants a learner the streams that it wants and may have. */
static void grant_streams(struct peer *peer, struct dl_message *welcome)
{
	const struct data_options *most = &peer->server->options->data;
	uint64_t n = peer->streams, window = peer->window;

	if (n > most->streams)
		n = most->streams;
	if (window > most->window)
		window = most->window;
	if (n < 2 || window < DL_WINDOW_MIN || peer->state != PEER_LEARNER)
		return;
	dl_conn_stripe(&peer->conn, (unsigned)n, window);
	welcome->streams = n;
	welcome->window = window;
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
		.tau = s->options->sync.config.tau,
		.apply = s->options->sync.apply,
		.wait = s->options->sync.wait,
		.global = dl_codec_name(s->globals.quant.codec),
		.text = dl_buf_cstr(&s->layout_text),
		.fragments = n,
		.versions = versions,
		.origins = origins,
		.seqs = seqs,
		.slot = peer->slot};

	if (peer->state == PEER_LEARNER)
		m.name = peer->name;
	grant_streams(peer, &m);
	for (uint32_t p = 0; p < n; p++) {
		versions[p] = dl_sync_version(s->core, p);
		origins[p] = dl_sync_origin(s->core, p);
		if (peer->state != PEER_LEARNER)
			continue;
		seqs[p] = dl_sync_taken(s->core, peer->name, peer->instance, p);
		/* It takes over the name that the version has now. */
		if (!dl_version_cmp(peer->versions[p], origins[p]))
			peer->versions[p] = versions[p];
	}
	dl_conn_send(&peer->conn, &m);
	free(versions);
	free(origins);
	free(seqs);
}

void peer_leave(struct peer *peer, int64_t deadline)
{
	peer->state = PEER_LEAVING;
	dl_conn_finish(&peer->conn, deadline);
}

void peer_refuse(struct peer *peer, int code, const char *text, int64_t now)
{
	struct dl_message m = {
		.kind = DL_MSG_ERROR, .code = code, .text = text};

	gate_note(peer->server, "%s%s%s: refused: %s", peer->name,
		*peer->name ? " at " : "", peer->address, text);
	dl_conn_send(&peer->conn, &m);
	peer->unwelcome = 1;
	peer_leave(peer, now + last_words);
}

void peer_bye(struct peer *peer, enum dl_bye bye, int64_t now)
{
	struct dl_message m = {.kind = DL_MSG_BYE, .bye = bye};

	dl_conn_send(&peer->conn, &m);
	peer_leave(peer, now + last_words);
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

void peer_drop(struct peer *peer, const struct dl_err *why)
{
	struct server *s = peer->server;
	enum peer_state was = peer->state;
	struct dl_sync_event ev;

	if (peer->over)
		return;
	peer->over = 1;
	peer->state = PEER_LEAVING;
	s->bytes_in += dl_conn_bytes_in(&peer->conn);
	s->bytes_out += dl_conn_bytes_out(&peer->conn);
	copy_leave(peer);
	dl_conn_release(&peer->conn);
	if (peer->coming)
		pushes_drop(&s->globals.pushes, peer->coming);
	if (was == PEER_STRANGER ||
		(was != PEER_LEARNER && why->code == DL_PROTOCOL))
		gate_note(s, "%s is sent away: %s", peer->address, why->text);
	if (was != PEER_LEARNER)
		return;
	cmd_note("%s is gone: %s", peer->name, why->text);
	if (!peer->parts)
		absent_add(&s->absent, peer->name, dl_now());
	peer_event(peer, DL_EV_LEAVE, &ev);
	server_event(s, &ev);
}

void peers_drop_strangers(struct server *s)
{
	struct dl_err why;

	dl_fail(&why, DL_UNAVAILABLE, "comes too late");
	for (struct peer *peer = s->peer; peer; peer = peer->next)
		if (peer->state == PEER_STRANGER)
			peer_drop(peer, &why);
}

/* Hello takes a few bytes, and the handshake before it. */
static int check_size(const struct peer *peer, struct dl_err *e)
{
	if (peer->state != PEER_STRANGER ||
		peer->conn.main.bytes_in <= DL_DOOR_BYTES)
		return 0;
	return dl_fail(e, DL_PROTOCOL, "more than %d bytes without a hello",
		DL_DOOR_BYTES);
}

static void work(struct peer *peer, int fd, short revents, int64_t now)
{
	struct dl_err e;

	if (peer->over)
		return;
	if (dl_conn_turn(&peer->conn, fd, revents, now, &e) ||
		check_size(peer, &e))
		peer_drop(peer, &e);
}

static void turn(void *ctx, int fd, short revents)
{
	work(ctx, fd, revents, dl_now());
}

static void take_in(
	struct server *s, int fd, const struct dl_key *own, int64_t now)
{
	struct dl_handshake_config session = {own, NULL, s->run->name};
	struct dl_conn_config c = {.handlers = &peer_handlers,
		.control = hello_limits,
		.data = nothing,
		.queue = DL_CONN_QUEUE + 2 * s->layout_text.len,
		.beat_ns = beat_time,
		.session = own ? &session : NULL,
		.rate = &s->rate,
		.came = hear_came};
	struct peer *peer = dl_alloc(sizeof *peer);

	peer->server = s;
	peer->slot = DL_SLOT_NONE;
	peer->deadline = now + hello_time;
	dl_address_peer(peer->address, fd);
	c.ctx = peer;
	dl_conn_init(&peer->conn, fd, &c, now);
	peer->next = s->peer;
	s->peer = peer;
}

static const struct dl_key *key_at(const struct server *s, int listener)
{
	size_t i = 0;

	while (s->listener[i] != listener)
		i++;
	return s->address[i].own;
}

int peers_accept(struct server *s, int listener, int64_t now)
{
	const struct dl_key *own = key_at(s, listener);
	struct dl_err e;
	int fd;

	for (int i = 0; i < ACCEPTS; i++) {
		if (dl_address_accept(listener, &fd, &e))
			return e.code;
		if (fd < 0)
			return 0;
		if (gate_enter(s, fd, now))
			take_in(s, fd, own, now);
		else
			close(fd);
	}
	return 0;
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
		free(peer->sent);
		free(peer->serve);
		free(peer);
	}
}

/* Has not said yet what it comes for, or came to say end. */
static int owes_word(const struct peer *peer)
{
	return peer->state == PEER_STRANGER || peer->state == PEER_ENDER ||
	       peer->state == PEER_STREAM;
}

static int has_deadline(const struct peer *peer)
{
	return owes_word(peer) || peer->state == PEER_WAITING ||
	       peer->state == PEER_OBSERVER || peer->state == PEER_CHECKPOINT;
}

/* A stream becomes its owner's, once `attached` is on its way. */
static void hand_over(struct peer *stream, int64_t now)
{
	struct peer *owner = peers_find_owner(stream);
	struct dl_err why;

	if (!dl_conn_offered(&stream->conn))
		return;
	if (!owner || !dl_conn_missing(&owner->conn)) {
		dl_fail(&why, DL_UNAVAILABLE, "nobody needs it any more");
		peer_drop(stream, &why);
		return;
	}
	cmd_debug("%s has one more stream (%s)", owner->name, stream->address);
	dl_conn_adopt(&owner->conn, &stream->conn, now);
	stream->over = 1;
}

static void work_last(struct peer *peer, int64_t now)
{
	work(peer, -1, 0, now);
	if (!peer->over)
		dl_conn_watch(&peer->conn, &peer->server->loop, turn, peer);
}

/* Who is first has the first of what --rate allows: each in turn. */
static void work_all(struct server *s, int64_t now)
{
	struct peer *first = s->peer, *peer;
	unsigned n = 0, k;

	for (peer = s->peer; peer; peer = peer->next)
		n++;
	for (k = n ? s->turns++ % n : 0; k; k--)
		first = first->next;
	for (peer = first; peer; peer = peer->next)
		work_last(peer, now);
	for (peer = s->peer; peer != first; peer = peer->next)
		work_last(peer, now);
}

void peers_work(struct server *s, int64_t now)
{
	struct dl_err why;

	gate_work(&s->gate, now);
	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		if (peer->state == PEER_WAITING && !peer->over)
			peer_judge(peer, now);
		if (peer->state == PEER_OBSERVER && !peer->over)
			observe_work(peer, now);
		if (peer->state == PEER_CHECKPOINT && !peer->over)
			copy_work(peer, now);
		if (peer->state == PEER_STREAM && !peer->over)
			hand_over(peer, now);
		if (owes_word(peer) && !peer->over && now >= peer->deadline) {
			dl_fail(&why, DL_UNAVAILABLE, "said nothing");
			peer_drop(peer, &why);
		}
	}
	/* Last, so that what all of the above has queued is on its way. */
	work_all(s, now);
	free_over(s);
}

int64_t peers_wake(const struct server *s)
{
	int64_t wake = gate_wake(&s->gate);

	for (const struct peer *peer = s->peer; peer; peer = peer->next) {
		int64_t at = dl_conn_deadline(&peer->conn);

		if (at < wake)
			wake = at;
		if (has_deadline(peer) && peer->deadline < wake)
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
		copy_leave(peer);
		dl_conn_release(&peer->conn);
	}
	free_over(s);
}
