#include "cmd/serve/hear.h"

#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/copy.h"
#include "cmd/serve/deliver.h"
#include "cmd/serve/hello.h"
#include "cmd/serve/record.h"
#include "cmd/serve/rights.h"
#include "cmd/serve/server.h"

static struct dl_allowance words_of(const struct peer *peer)
{
	uint32_t fragments = peer->server->layout->fragments;

	return (struct dl_allowance){
		HEAR_BURST + fragments, DL_SECOND / HEAR_RATE};
}

void hear_answer(struct peer *peer)
{
	dl_bucket_give(&peer->words, words_of(peer));
}

static int is_ending(const struct server *s)
{
	struct dl_sync_info info;

	dl_sync_info(s->core, &info);
	return info.ending;
}

/* No learner has so much to say, however fast it trains: each message costs a
 * line of the tape, and a want a fragment. */
static int check_words(
	struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	struct dl_allowance wants = {
		HEAR_WANTS + peer->server->layout->fragments, DL_SECOND};
	int64_t now = dl_now();

	if (!dl_bucket_take(&peer->words, words_of(peer), now))
		return dl_fail(e, DL_PROTOCOL, "more than %d messages a second",
			HEAR_RATE);
	if (m->kind == DL_MSG_WANT && !dl_bucket_take(&peer->wants, wants, now))
		return dl_fail(e, DL_PROTOCOL, "wants too much");
	return 0;
}

/* What it took to bring the learner what it has applied. */
static void take_sent(struct peer *peer, struct dl_sync_event *ev)
{
	struct sent *sent = &peer->sent[ev->fragment];

	ev->elements = sent->elements;
	ev->bytes = sent->bytes;
	*sent = (struct sent){0, 0};
}

/* What a learner says becomes an event of the core. */
static int on_learner(
	struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	struct dl_sync_event ev;

	if (m->fragment >= peer->server->layout->fragments)
		return dl_fail(e, DL_PROTOCOL, "%s of fragment %u",
			dl_message_kind_name(m->kind), m->fragment);
	peer_event(peer, DL_EV_TIME, &ev);
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
		take_sent(peer, &ev);
		break;
	case DL_MSG_WANT:
		ev.kind = DL_EV_WANT;
		deliver_lost(peer, m->fragment);
		break;
	case DL_MSG_END:
		/* Who leaves as the run ends has its answer still to give. */
		if (!m->step && is_ending(peer->server))
			return 0;
		ev.kind = DL_EV_DRAINED;
		break;
	case DL_MSG_BYE:
		peer->parts = 1;
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
	if (peer->state == PEER_LEAVING)
		return 0;
	if (check_words(peer, m, e))
		return e->code;
	if (m->kind == DL_MSG_HELLO)
		return peer_hello(peer, m, e);
	if (peer->state == PEER_LEARNER)
		return on_learner(peer, m, e);
	if (peer->state == PEER_ENDER && m->kind == DL_MSG_END) {
		if (peer->deadline == INT64_MAX)
			return dl_fail(e, DL_PROTOCOL, "end comes twice");
		cmd_note("%s%s%s asks for the end of the run", peer->name,
			*peer->name ? " at " : "", peer->address);
		peer->deadline = INT64_MAX;
		peer_event(peer, DL_EV_END, &ev);
		server_event(peer->server, &ev);
		return 0;
	}
	if (peer->state == PEER_CHECKPOINT && m->kind == DL_MSG_FETCH)
		return copy_fetch(peer, m, e);
	if (m->kind == DL_MSG_BYE)
		return dl_fail(e, DL_UNAVAILABLE, "said bye");
	return dl_fail(e, DL_PROTOCOL, "%s before welcome",
		dl_message_kind_name(m->kind));
}

/* Who pushes what is no such fragment is told so, and goes. */
static void refuse_push(
	struct peer *peer, const struct dl_message *m, struct dl_err *why)
{
	struct dl_sync_event ev;

	dl_at(why, "push of fragment %u", m->fragment);
	peer_refuse(peer, why->code, why->text, dl_now());
	peer_event(peer, DL_EV_LEAVE, &ev);
	server_event(peer->server, &ev);
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct peer *peer = ctx;
	struct server *s = peer->server;
	struct dl_err why;

	(void)c;
	if (peer->state == PEER_LEAVING)
		return 0;
	if (m->kind != DL_MSG_PUSH || peer->state != PEER_LEARNER)
		return dl_fail(e, DL_PROTOCOL, "%s from one who is no learner",
			dl_message_kind_name(m->kind));
	if (m->fragment >= s->layout->fragments)
		return dl_fail(
			e, DL_PROTOCOL, "push of fragment %u", m->fragment);
	if (!rights_may_push(peer, m->fragment))
		return 0; /* and on_whole tells the core */
	if (pushes_begin(
		    &s->globals.pushes, m->fragment, h, &peer->coming, &why)) {
		refuse_push(peer, m, &why);
		return 0;
	}
	*dest = peer->coming->data;
	return 0;
}

static void on_barred(struct peer *peer, const struct dl_message *m,
	const struct dl_header *h)
{
	struct dl_sync_event ev;

	peer_event(peer, DL_EV_BARRED, &ev);
	ev.fragment = m->fragment;
	ev.seq = m->seq;
	ev.steps = m->steps;
	ev.bytes = h->data_size;
	server_event(peer->server, &ev);
}

void hear_came(void *ctx, uint64_t bytes)
{
	const struct peer *peer = ctx;

	arrival_take(&peer->server->globals.pushes, peer->coming, bytes);
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct peer *peer = ctx;
	struct push *push = peer->coming;
	struct dl_sync_event ev;
	struct dl_err lost;

	(void)c;
	(void)e;
	if (peer->state == PEER_LEAVING)
		return 0;
	if (!push) {
		on_barred(peer, m, h);
		return 0;
	}
	if (peer->server->options->record && record_push(peer, h, dest, &lost))
		cmd_warn("%s: a push is not recorded", lost.text);
	peer->coming = NULL;
	pushes_arrived(&peer->server->globals.pushes, push);
	peer_event(peer, DL_EV_PUSH, &ev);
	ev.fragment = m->fragment;
	ev.seq = m->seq;
	ev.step = m->step;
	ev.base = m->base;
	ev.steps = m->steps;
	ev.tokens = m->tokens;
	ev.norm = push->norm;
	ev.push = push->id;
	ev.elements = push->coded.elements;
	ev.bytes = push->bytes;
	server_event(peer->server, &ev);
	return 0;
}

const struct dl_conn_handlers peer_handlers = {on_message, on_begin, on_whole};
