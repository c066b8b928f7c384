#include "cmd/serve/group.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/serve/server.h"
#include "link/authorized.h"

struct seat {
	const struct peer *holder; /* NULL: free */
	int awaited;		   /* somebody waits for it already */
};

static struct seat *look_at_seats(const struct peer *peer)
{
	struct seat *seats = dl_alloc_array(peer->may->max, sizeof *seats);

	for (const struct peer *p = peer->server->peer; p; p = p->next) {
		uint32_t slot;

		if (p->over || dl_authorized_claim(peer->may, p->name, &slot) !=
				       DL_CLAIM_MEMBER)
			continue;
		if (p->state == PEER_LEARNER)
			seats[slot].holder = p;
		if (p->state == PEER_WAITING)
			seats[slot].awaited = 1;
	}
	return seats;
}

/* Free before held, held in silence before others. */
static int is_better(const struct seat *a, const struct seat *b)
{
	if (!a->holder || !b->holder)
		return b->holder != NULL;
	return a->holder->conn.main.heard < b->holder->conn.main.heard;
}

/* Nobody waits for it, and its holder has not shown that it lives. */
static int may_be_free(const struct seat *seat, int64_t since)
{
	return !seat->awaited &&
	       (!seat->holder || seat->holder->conn.main.heard <= since);
}

static uint32_t choose(const struct seat *seats, const struct peer *peer)
{
	uint32_t n = peer->may->max, best = n;

	for (uint32_t i = 0; i < n; i++) {
		if (seats[i].holder &&
			seats[i].holder->instance == peer->instance)
			return i;
		if (may_be_free(&seats[i], peer->came) &&
			(best == n || is_better(&seats[i], &seats[best])))
			best = i;
	}
	return best;
}

int group_place(struct peer *peer, struct dl_err *e)
{
	const struct dl_authorized *may = peer->may;
	struct seat *seats = look_at_seats(peer);
	uint32_t slot = choose(seats, peer);

	free(seats);
	if (slot == may->max)
		return dl_fail(e, DL_NOPERM, "all %u names of %s are taken",
			may->max, may->name);
	peer->slot = slot;
	peer->placed = 1;
	dl_authorized_member(peer->name, may, slot);
	return 0;
}
