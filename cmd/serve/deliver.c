#include "cmd/serve/deliver.h"

#include <stdlib.h>

#include "base/num.h"
#include "cmd/serve/hear.h"
#include "cmd/serve/server.h"

/* A global under way. */
struct delivery {
	struct peer *peer;
	uint32_t fragment;
	uint64_t bytes; /* of its record */
	struct shared *data;
};

static void delivered(void *ctx, int whole)
{
	struct delivery *d = ctx;
	const struct dl_layout *layout = d->peer->server->layout;

	if (whole && d->peer->sent) {
		struct sent *sent = &d->peer->sent[d->fragment];

		sent->elements += layout->fragment[d->fragment].elements;
		sent->bytes += d->bytes;
	}
	shared_done(d->data);
	free(d);
}

/* Does peer have that version, once it has read what is on its way? Of two that
 * wait only the second is sent, so it cannot start from the first. */
static int has(struct peer *peer, uint32_t p, struct dl_version version)
{
	return peer->state == PEER_LEARNER && peer->decodes &&
	       !dl_conn_waits(&peer->conn, p + 1) &&
	       !dl_version_cmp(peer->versions[p], version);
}

void deliver(struct peer *peer, uint32_t p, uint64_t step, int final)
{
	struct server *s = peer->server;
	struct globals *g = &s->globals;
	struct dl_message m = {.kind = DL_MSG_GLOBAL,
		.fragment = p,
		.version = dl_sync_version(s->core, p),
		.step = step,
		.final = final};
	const struct update *update =
		final ? NULL : globals_update(g, p, m.version);
	struct delivery *d = dl_alloc(sizeof *d);
	struct dl_buf head = DL_BUF_INIT;

	if (update && has(peer, p, update->base)) {
		m.base = update->base;
		d->data = shared_read(update->data);
		dl_message_pack_coded(&m, s->layout, &g->quant, &head);
	} else {
		d->data = shared_read(g->values[p]);
		dl_message_pack_data(&m, s->layout, &head);
	}
	d->peer = peer;
	d->fragment = p;
	d->bytes = head.len + d->data->bytes;
	dl_conn_send_data(&peer->conn, p + 1, &head, d->data->data,
		d->data->bytes, delivered, d);
	if (peer->versions)
		peer->versions[p] = m.version;
	hear_answer(peer);
	/* The next version may be made before the loop turns. */
	dl_conn_flush(&peer->conn, dl_now());
}

void deliver_lost(struct peer *peer, uint32_t p)
{
	peer->versions[p] = (struct dl_version){0, 0};
}
