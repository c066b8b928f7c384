#include "cmd/learn/learner.h"

void uplink_init(struct learner *l, enum dl_link_kind kind)
{
	l->uplink.carrier =
		kind == DL_LINK_DIR ? &uplink_spool : &uplink_socket;
	l->uplink.away_at = INT64_MAX;
}

void uplink_release(struct learner *l)
{
	l->uplink.carrier->release(l);
}

void uplink_work(struct learner *l, int64_t now)
{
	l->uplink.carrier->work(l, now);
}

int64_t uplink_wake(const struct learner *l)
{
	return l->uplink.carrier->wake(l);
}

void uplink_hurry(struct learner *l, int64_t now)
{
	l->uplink.carrier->hurry(l, now);
}

void uplink_send(struct learner *l, const struct dl_message *m)
{
	l->uplink.carrier->send(l, m);
}

void uplink_push(struct learner *l, struct push *push)
{
	l->uplink.carrier->push(l, push);
}

void uplink_push_record(const struct learner *l, const struct push *push,
	struct dl_writer *w)
{
	const struct dl_quant *q = &l->weights.quant;
	const struct dl_learn_action *a = &push->what;
	struct dl_message m = {.kind = DL_MSG_PUSH,
		.fragment = a->fragment,
		.seq = a->seq,
		.step = a->step,
		.base = a->base,
		.steps = a->steps,
		.tokens = a->tokens};

	dl_message_put_data(
		&m, &l->layout, q->codec == DL_CODEC_F32 ? NULL : q, w);
}

void uplink_part(struct learner *l, int64_t now)
{
	l->uplink.carrier->part(l, now);
}

int uplink_closed(const struct learner *l)
{
	return l->uplink.carrier->closed(l);
}
