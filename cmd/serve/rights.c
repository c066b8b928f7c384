#include "cmd/serve/rights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/gate.h"
#include "cmd/serve/group.h"
#include "cmd/serve/server.h"
#include "link/key.h"
#include "link/offer.h"

enum { COMINGS = 64 }; /* of a key at once, then one a second */

static const int64_t last_words = 5 * DL_SECOND;
/* The wall clock may be set meanwhile. */
static const int64_t look_again = 60 * DL_SECOND;

int rights_read(struct server *s, struct dl_err *e)
{
	const char *path = s->options->authorized;
	int code = path ? dl_authorized_read(&s->authorized, path, e) : 0;

	s->comings = dl_alloc_array(s->authorized.entries, sizeof *s->comings);
	return code;
}

/* Fragments that nobody has: most likely a slip, or a line for another run. */
static void warn_beyond(const struct server *s, const struct dl_authorized *may)
{
	uint32_t fragments = s->layout->fragments;
	size_t i = 0;

	while (i < may->ranges && may->range[i].last < fragments)
		i++;
	if (i == may->ranges)
		return;
	cmd_warn("%s:%zu: fragment %u: the layout has %u",
		s->options->authorized, may->line,
		may->range[i].first < fragments ? fragments
						: may->range[i].first,
		fragments);
}

void rights_say(const struct server *s)
{
	const struct dl_authorized_list *l = &s->authorized;

	if (!s->options->authorized)
		return;
	for (size_t i = 0; i < l->entries; i++)
		warn_beyond(s, &l->entry[i]);
	cmd_note("%s: %zu key%s", s->options->authorized, l->entries,
		l->entries == 1 ? "" : "s");
}

/* Its session is over, and it is told why. */
static void dismiss(struct peer *peer, int code, const char *why, int64_t now)
{
	struct dl_message m = {.kind = DL_MSG_ERROR, .code = code, .text = why};
	enum peer_state was = peer->state;
	struct dl_sync_event ev;
	struct dl_err e;

	cmd_note("%s at %s is sent away: %s", peer->name, peer->address, why);
	peer->may = NULL;
	peer->unwelcome = 1;
	if (was == PEER_LEAVING || was == PEER_OBSERVER) {
		/* All that it is still to be sent is on its way. */
		dl_fail(&e, code, "%s", why);
		peer_drop(peer, &e);
		return;
	}
	dl_conn_send(&peer->conn, &m);
	peer_leave(peer, now + last_words);
	if (was != PEER_LEARNER)
		return;
	peer_event(peer, DL_EV_LEAVE, &ev);
	server_event(peer->server, &ev);
}

/* One whose line has changed may come back at once, with its new rights. */
static void look_up_again(
	struct peer *peer, const struct dl_authorized_list *fresh, int64_t now)
{
	const struct dl_authorized *may =
		dl_authorized_find(fresh, peer->may->key);
	char why[DL_NAME_MAX + 40];

	if (!may) {
		snprintf(why, sizeof why, "the key of %s was removed",
			peer->may->name);
		dismiss(peer, DL_NOPERM, why, now);
	} else if (!dl_authorized_same(peer->may, may)) {
		snprintf(why, sizeof why, "the rights of %s have changed",
			peer->may->name);
		dismiss(peer, DL_TEMPFAIL, why, now);
	} else {
		peer->may = may;
	}
}

void rights_reread(struct server *s, int64_t now)
{
	struct dl_authorized_list fresh;
	struct dl_err e;

	if (!s->options->authorized)
		return;
	if (dl_authorized_read(&fresh, s->options->authorized, &e)) {
		cmd_warn("%s: what was read before stays", e.text);
		return;
	}
	for (struct peer *peer = s->peer; peer; peer = peer->next)
		if (peer->may && !peer->over)
			look_up_again(peer, &fresh, now);
	dl_authorized_release(&s->authorized);
	s->authorized = fresh;
	free(s->comings);
	s->comings = dl_alloc_array(fresh.entries, sizeof *s->comings);
	rights_say(s);
}

static void say_expired(char *out, size_t size, const struct dl_authorized *may)
{
	time_t seconds = (time_t)(may->expires / DL_SECOND);
	struct tm t;
	char at[32];

	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &t));
	snprintf(out, size, "the key of %s expired at %s", may->name, at);
}

void rights_work(struct server *s, int64_t now)
{
	int64_t wall = dl_wall();
	char why[DL_NAME_MAX + 60];

	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		if (peer->over || !peer->may || wall < peer->may->expires)
			continue;
		say_expired(why, sizeof why, peer->may);
		dismiss(peer, DL_NOPERM, why, now);
	}
}

int64_t rights_wake(const struct server *s, int64_t now)
{
	int64_t wait = INT64_MAX, wall = dl_wall();

	for (const struct peer *peer = s->peer; peer; peer = peer->next)
		if (!peer->over && peer->may &&
			peer->may->expires - wall < wait)
			wait = peer->may->expires - wall;
	if (wait > INT64_MAX / 2)
		return INT64_MAX;
	return now + (wait < look_again ? wait : look_again);
}

/* What the key lets one do who comes in that role. */
static int check_role(
	const struct dl_authorized *may, enum dl_role role, struct dl_err *e)
{
	if ((role == DL_ROLE_LEARNER || role == DL_ROLE_JOINER) &&
		may->observer)
		return dl_fail(
			e, DL_NOPERM, "%s may only take the model", may->name);
	if (role == DL_ROLE_ENDER && !may->end)
		return dl_fail(
			e, DL_NOPERM, "%s may not end the run", may->name);
	return 0;
}

/* Each coming is a line of the log and one of the tape. A learner that is cut
 * off again and again waits longer each time, and a group has as many. */
static int check_coming(
	struct server *s, const struct dl_authorized *may, struct dl_err *e)
{
	unsigned members = may->max ? may->max : 1;
	struct dl_allowance comings = {COMINGS * members, DL_SECOND / members};

	if (dl_bucket_take(
		    &s->comings[may - s->authorized.entry], comings, dl_now()))
		return 0;
	return dl_fail(e, DL_TEMPFAIL, "%s comes too often", may->name);
}

static int not_yours(
	const struct dl_authorized *may, const char *name, struct dl_err *e)
{
	if (may->max)
		return dl_fail(e, DL_NOPERM,
			"this key is for %s.0 to %s.%u, not for %s", may->name,
			may->name, may->max - 1, name);
	return dl_fail(e, DL_NOPERM, "this key is for %s, not for %s",
		may->name, name);
}

static int take_name(
	struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	enum dl_claim claim;
	uint32_t slot = 0;

	if (!*peer->name)
		strcpy(peer->name, peer->may->name);
	claim = dl_authorized_claim(peer->may, peer->name, &slot);
	if (claim == DL_CLAIM_NOT)
		return not_yours(peer->may, peer->name, e);
	if (m->role != DL_ROLE_LEARNER)
		return 0;
	if (claim == DL_CLAIM_ANY)
		return group_place(peer, e);
	if (claim == DL_CLAIM_MEMBER)
		peer->slot = slot;
	return 0;
}

/* A state is had of who has the key that it was offered with. */
static int check_serve(
	const char *serve, const unsigned char *key, struct dl_err *e)
{
	struct dl_address a;

	if (!serve || dl_offer_link(&a, serve, e))
		return serve ? e->code : 0;
	return memcmp(a.key, key, DL_KEY) == 0
		       ? 0
		       : dl_fail(e, DL_NOPERM,
				 "it serves its state by another key than it "
				 "comes with");
}

int rights_hello(
	struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	const unsigned char *key = dl_stream_peer(&peer->conn.main);
	const struct dl_authorized *may;
	char text[DL_KEY_TEXT + 1];
	char why[DL_NAME_MAX + 60];
	int code;

	if (!key)
		return 0;
	may = dl_authorized_find(&peer->server->authorized, key);
	if (!may)
		return dl_fail(e, DL_NOPERM, "key %s is not authorised",
			dl_key_print(text, key));
	if (dl_wall() >= may->expires) {
		say_expired(why, sizeof why, may);
		return dl_fail(e, DL_NOPERM, "%s", why);
	}
	code = check_role(may, m->role, e);
	if (!code)
		code = check_serve(m->serve, key, e);
	if (!code)
		code = gate_key(peer->server, may, e);
	if (!code && m->role != DL_ROLE_STREAM)
		code = check_coming(peer->server, may, e);
	if (code)
		return code;
	peer->may = may;
	peer->reads.bytes = may->rate;
	peer->conn.config.reads = &peer->reads;
	return take_name(peer, m, e);
}

int rights_may_push(const struct peer *peer, uint32_t fragment)
{
	return !peer->may || dl_authorized_may_push(peer->may, fragment);
}
