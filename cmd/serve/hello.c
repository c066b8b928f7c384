#include "cmd/serve/hello.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/copy.h"
#include "cmd/serve/figures.h"
#include "cmd/serve/group.h"
#include "cmd/serve/joiner.h"
#include "cmd/serve/observe.h"
#include "cmd/serve/rights.h"
#include "cmd/serve/server.h"

static const int64_t probe_time = 2 * DL_SECOND + DL_SECOND / 2;

enum { NAMES = 4 }; /* times --max-learners, without keys */

static const struct dl_limits push_limits = {16 << 20, UINT64_MAX};

/* Whoever is known to the core under that name. */
static struct peer *find_holder(const struct server *s, const char *name)
{
	struct peer *peer = s->peer;

	while (peer && (peer->over || peer->state != PEER_LEARNER ||
			       strcmp(peer->name, name) != 0))
		peer = peer->next;
	return peer;
}

/* A run never forgets a name; those of keys are as many as are authorised. */
static int check_room(const struct peer *peer, struct dl_err *e)
{
	const struct server *s = peer->server;
	uint64_t most = s->options->learners, here = 0;
	struct dl_sync_info run;

	for (const struct peer *p = s->peer; p; p = p->next)
		here += !p->over && p->state == PEER_LEARNER;
	if (here >= most)
		return dl_fail(e, DL_TEMPFAIL, "all places are taken: %llu",
			(unsigned long long)most);
	if (peer->may || dl_sync_knows(s->core, peer->name))
		return 0;
	dl_sync_info(s->core, &run);
	if (run.learners >= NAMES * most)
		return dl_fail(e, DL_NOPERM,
			"this run knows %zu names, and takes no new one",
			run.learners);
	return 0;
}

static void admit(struct peer *peer, int64_t now)
{
	struct server *s = peer->server;
	struct dl_sync_event ev;
	struct dl_err e;

	if (check_room(peer, &e)) {
		peer_refuse(peer, e.code, e.text, now);
		return;
	}
	peer->state = PEER_LEARNER;
	peer->deadline = INT64_MAX;
	peer->conn.config.silence_ns = s->options->sync.dead_ns;
	peer->conn.config.data = push_limits;
	cmd_note("%s is here (%s)", peer->name, peer->address);
	absent_return(s, peer->name, now);
	peer_event(peer, DL_EV_JOIN, &ev);
	ev.clock = peer->clock;
	ev.steps = peer->steps;
	ev.tokens = peer->tokens;
	ev.versions = peer->versions;
	server_event(s, &ev);
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
		peer->heard = holder->conn.main.heard;
		return;
	}
	if (holder) {
		dl_fail(&why, DL_UNAVAILABLE, "connected anew");
		peer_drop(holder, &why);
	}
	admit(peer, now);
}

static void say_taken(char *out, size_t size, const struct peer *peer,
	const struct peer *holder)
{
	if (peer->placed)
		snprintf(out, size, "all %u names of %s are taken, %s by %s",
			peer->may->max, peer->may->name, peer->name,
			holder->address);
	else
		snprintf(out, size, "%s is taken by %s", peer->name,
			holder->address);
}

/* Has the holder of the name said anything since the newcomer came? */
void peer_judge(struct peer *peer, int64_t now)
{
	struct peer *holder = find_holder(peer->server, peer->name);
	struct dl_err why;
	char text[480];

	if (holder && holder->conn.main.heard > peer->heard) {
		if (peer->placed && !group_place(peer, &why)) {
			claim_name(peer, now);
			return;
		}
		say_taken(text, sizeof text, peer, holder);
		peer_refuse(peer, DL_NOPERM, text, now);
		return;
	}
	if (holder && now < peer->deadline)
		return;
	if (holder) {
		dl_fail(&why, DL_UNAVAILABLE, "silent, and replaced");
		peer_drop(holder, &why);
	}
	admit(peer, now);
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

/* Is word one of the words? */
static int has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	while (*words) {
		size_t length = strcspn(words, " ");

		if (length == n && !memcmp(words, word, n))
			return 1;
		words += length;
		words += strspn(words, " ");
	}
	return 0;
}

static void begin_observer(
	struct peer *peer, void (*begin)(struct peer *, int64_t), int64_t now)
{
	if (observe_enter(peer->server, now))
		begin(peer, now);
	else
		peer_refuse(peer, DL_TEMPFAIL, "too many observers, try later",
			now);
}

/* One more stream of a connection that is there and misses one. */
static void begin_stream(struct peer *peer, int64_t now)
{
	const struct peer *owner = peers_find_owner(peer);
	struct dl_message m = {.kind = DL_MSG_ATTACHED};

	if (!owner)
		peer_refuse(peer, DL_NOPERM,
			"nobody of that name has a connection", now);
	else if (!dl_conn_missing(&owner->conn))
		peer_refuse(peer, DL_NOPERM, "all streams are there", now);
	else if (!gate_spares(&peer->server->gate, peer->conn.main.fd))
		peer_refuse(peer, DL_TEMPFAIL,
			"no descriptors for more streams", now);
	else {
		peer->state = PEER_STREAM;
		dl_conn_send(&peer->conn, &m);
		dl_conn_offer(&peer->conn);
	}
}

static void begin_learner(
	struct peer *peer, const struct dl_message *m, int64_t now)
{
	const struct server *s = peer->server;
	uint32_t n = s->layout->fragments;

	if (!*peer->name) {
		peer_refuse(peer, DL_PROTOCOL, "a learner without a name", now);
		return;
	}
	peer->streams = m->streams;
	peer->window = m->window;
	peer->clock = m->clock;
	peer->steps = m->steps;
	peer->tokens = m->tokens;
	peer->decodes =
		has_word(m->codecs, dl_codec_name(s->globals.quant.codec));
	peer->sent = dl_alloc_array(n, sizeof *peer->sent);
	peer->versions = dl_alloc_array(n, sizeof *peer->versions);
	if (m->fragments)
		memcpy(peer->versions, m->versions, n * sizeof *peer->versions);
	joiner_keep_serve(peer, m->serve);
	claim_name(peer, now);
}

int peer_hello(struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	struct server *s = peer->server;
	int64_t now = dl_now();

	if (peer->state != PEER_STRANGER)
		return dl_fail(e, DL_PROTOCOL, "hello comes twice");
	strcpy(peer->name, m->name);
	peer->instance = m->instance;
	peer->came = now;
	if (rights_hello(peer, m, e) || check_hello(s, m, e)) {
		peer_refuse(peer, e->code, e->text, now);
		return 0;
	}
	switch (m->role) {
	case DL_ROLE_OBSERVER:
		begin_observer(peer, observe_begin, now);
		break;
	case DL_ROLE_ENDER:
		peer->state = PEER_ENDER; /* end is due when hello was */
		break;
	case DL_ROLE_STREAM:
		begin_stream(peer, now);
		break;
	case DL_ROLE_JOINER:
		joiner_begin(peer, m, now);
		break;
	case DL_ROLE_LEARNER:
		begin_learner(peer, m, now);
		break;
	case DL_ROLE_CHECKPOINT:
		copy_begin(peer, now);
		break;
	case DL_ROLE_WATCHER:
		begin_observer(peer, figures_begin, now);
		break;
	case DL_ROLES:
		break; /* is none */
	}
	return 0;
}
