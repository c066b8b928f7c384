#include "cmd/learn/learner.h"

void uplink_init(struct learner *l, enum dl_link_kind kind)
{
	l->uplink.carrier =
		kind == DL_LINK_DIR ? &uplink_spool : &uplink_socket;
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

void uplink_send(struct learner *l, const struct dl_message *m)
{
	l->uplink.carrier->send(l, m);
}

void uplink_push(struct learner *l, struct push *push)
{
	l->uplink.carrier->push(l, push);
}

void uplink_part(struct learner *l, int64_t now)
{
	l->uplink.carrier->part(l, now);
}

int uplink_closed(const struct learner *l)
{
	return l->uplink.carrier->closed(l);
}
