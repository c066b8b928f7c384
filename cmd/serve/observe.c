#include "cmd/serve/observe.h"

#include "base/num.h"
#include "cmd/serve/deliver.h"
#include "cmd/serve/server.h"

/* One that has read nothing for so long may have to make room. */
static const int64_t slow = 5 * DL_SECOND;

int64_t observe_patience(const struct server *s)
{
	return OBSERVER_DEAD * s->options->sync.dead_ns;
}

static void send_away(struct peer *peer, const char *text)
{
	struct dl_err why;

	gate_note(peer->server, "%s is sent away: %s", peer->address, text);
	dl_fail(&why, DL_TEMPFAIL, "%s", text);
	peer_drop(peer, &why);
}

int observe_enter(struct server *s, int64_t now)
{
	struct peer *slowest = NULL;
	size_t observers = 0;

	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		if (peer->over || peer->state != PEER_OBSERVER)
			continue;
		observers++;
		if (!slowest || peer->deadline <= slowest->deadline)
			slowest = peer;
	}
	if (observers < OBSERVERS)
		return 1;
	if (slowest->deadline - observe_patience(s) > now - slow)
		return 0;
	send_away(slowest, "reads nothing while others wait");
	return 1;
}

void observe_begin(struct peer *peer, int64_t now)
{
	struct server *s = peer->server;

	peer->state = PEER_OBSERVER;
	peer->deadline = now + observe_patience(s);
	peer_send_welcome(peer, dl_sync_clock(s->core));
	for (uint32_t p = 0; p < s->layout->fragments; p++)
		deliver(peer, p, dl_sync_clock(s->core), 0);
	dl_conn_finish(&peer->conn, INT64_MAX);
}

void observe_work(struct peer *peer, int64_t now)
{
	uint64_t out = dl_conn_bytes_out(&peer->conn);

	if (out != peer->out) {
		peer->out = out;
		peer->deadline = now + observe_patience(peer->server);
	} else if (now >= peer->deadline) {
		send_away(peer, "reads nothing");
	}
}
