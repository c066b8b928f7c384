#include "cmd/serve/joiner.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cmd/serve/gate.h"
#include "cmd/serve/server.h"
#include "link/offer.h"

/* Within which a joiner that was given nothing comes as a learner. */
static const int64_t coming_time = 5 * DL_SECOND;

void joiner_keep_serve(struct peer *learner, const char *serve)
{
	struct dl_address a;

	if (!serve || dl_offer_link(&a, serve, NULL))
		return;
	/* Who comes by a socket of this machine has no host to be seen. */
	if (!*a.host && dl_address_host(a.host, learner->conn.main.fd))
		return;
	learner->serve = dl_alloc(sizeof a);
	*learner->serve = a;
}

/* The key by which it will come to others, as text; "" when it has none. */
static void key_of(char out[DL_KEY_TEXT + 1], const struct peer *peer,
	const struct dl_message *hello)
{
	const unsigned char *key = dl_conn_peer(&peer->conn);

	if (key)
		dl_key_print(out, key);
	else
		strcpy(out, hello->key && *hello->key ? hello->key : "");
}

static int serves(const struct peer *donor, const struct peer *joiner)
{
	return !donor->over && donor->state == PEER_LEARNER && donor->serve &&
	       strcmp(donor->name, joiner->name) != 0;
}

/* Of those named least lately, so that joiners spread. Who is named first is
 * asked first, so only that counts. */
static size_t choose(struct server *s, const struct peer *joiner,
	struct peer *chosen[JOINER_DONORS])
{
	size_t n = 0;

	for (struct peer *peer = s->peer; peer; peer = peer->next) {
		size_t i = n;

		if (!serves(peer, joiner))
			continue;
		for (; i && chosen[i - 1]->named > peer->named; i--)
			if (i < JOINER_DONORS)
				chosen[i] = chosen[i - 1];
		if (i < JOINER_DONORS)
			chosen[i] = peer;
		if (n < JOINER_DONORS)
			n++;
	}
	if (n)
		chosen[0]->named = ++s->named;
	return n;
}

static uint64_t clock_of(const struct server *s, const char *name)
{
	struct dl_sync_learner_info info;

	for (size_t i = 0; dl_sync_learner(s->core, i, &info); i++)
		if (!strcmp(info.name, name))
			return info.clock;
	return 0;
}

static void name_donor(struct peer *donor, const struct peer *joiner,
	const char *key, struct dl_buf *text)
{
	struct dl_message guest = {
		.kind = DL_MSG_GUEST, .name = joiner->name, .key = key};
	struct dl_offer offer = {.clock = clock_of(donor->server, donor->name),
		.address = *donor->serve};

	strcpy(offer.name, donor->name);
	dl_offer_write(text, &offer);
	dl_conn_send(&donor->conn, &guest);
}

void joiner_begin(
	struct peer *peer, const struct dl_message *hello, int64_t now)
{
	struct server *s = peer->server;
	struct peer *donor[JOINER_DONORS];
	struct dl_buf text = DL_BUF_INIT;
	struct dl_message m = {.kind = DL_MSG_PEERS};
	char key[DL_KEY_TEXT + 1];
	size_t n = 0;

	key_of(key, peer, hello);
	if (*key)
		n = choose(s, peer, donor);
	for (size_t i = 0; i < n; i++)
		name_donor(donor[i], peer, key, &text);
	gate_note(s, "%s joins at %s: %zu learners have a state for it",
		*peer->name ? peer->name : "somebody", peer->address, n);
	m.text = dl_buf_cstr(&text);
	peer_send_welcome(peer, dl_sync_clock(s->core));
	dl_conn_send(&peer->conn, &m);
	dl_buf_free(&text);
	peer_bye(peer, DL_BYE_DONE, now);
	s->expects = now + coming_time;
}
