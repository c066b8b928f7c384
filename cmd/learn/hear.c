#include "cmd/learn/hear.h"

#include <string.h>

#include "base/num.h"
#include "cmd/client.h"
#include "cmd/cmd.h"
#include "cmd/learn/identity.h"
#include "cmd/learn/learner.h"
#include "cmd/learn/say.h"

static int fragment_ok(const struct learner *l, const struct dl_message *m)
{
	return l->uplink.welcomed && m->fragment < l->layout.fragments;
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

const struct dl_conn_handlers hear_handlers = {on_message, on_begin, on_whole};
