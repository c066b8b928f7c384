#include "cmd/learn/coming.h"

#include <string.h>

#include "base/num.h"
#include "cmd/learn/learner.h"

static void begin(struct learner *l, size_t bytes)
{
	struct coming *c = &l->uplink.coming;

	c->bytes = bytes;
	c->data = shelf_take_bytes(&l->weights.shelf, bytes);
}

static int begin_values(struct learner *l, const struct dl_message *m,
	const struct dl_header *h, struct dl_err *e)
{
	if (strcmp(m->codec, "f32") != 0)
		return dl_fail(e, DL_PROTOCOL, "values in %s", m->codec);
	if (dl_layout_check_record(&l->layout, m->fragment, h, e))
		return e->code;
	begin(l, h->data_size);
	return 0;
}

static int begin_update(struct learner *l, const struct dl_message *m,
	const struct dl_header *h, struct dl_err *e)
{
	struct coming *c = &l->uplink.coming;
	struct dl_message want = {.kind = DL_MSG_WANT, .fragment = m->fragment};

	switch (weights_judge_update(
		&l->weights, m->fragment, m->base, m->version)) {
	case UPDATE_ADD:
		break;
	case UPDATE_ASK:
		uplink_send(l, &want);
		return 0;
	default:
		return 0;
	}
	if (dl_coded_open(&c->update, &l->layout, m->fragment, h, NULL, e)) {
		dl_coded_release(&c->update);
		return e->code;
	}
	begin(l, h->data_size);
	c->update.data = c->data;
	return 0;
}

int coming_begin(struct learner *l, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	int code = m->base.epoch ? begin_update(l, m, h, e)
				 : begin_values(l, m, h, e);

	*dest = l->uplink.coming.data;
	return code;
}

/* The buffer of values becomes the weights', that of an update does not. */
static void hand_over(struct learner *l, const struct dl_message *m)
{
	struct coming *c = &l->uplink.coming;

	if (!c->update.data) {
		weights_came(&l->weights, m->fragment, m->version, c->data);
		c->data = NULL;
		return;
	}
	weights_add_update(&l->weights, m->fragment, m->version, &c->update);
	coming_lost(l);
}

void coming_whole(struct learner *l, const struct dl_message *m)
{
	struct dl_learn_event ev = {.kind = DL_LE_GLOBAL,
		.now = dl_now(),
		.fragment = m->fragment,
		.version = m->version,
		.step = m->step,
		.final = m->final};

	if (!l->uplink.coming.data)
		return;
	hand_over(l, m);
	learner_event(l, &ev);
}

void coming_lost(struct learner *l)
{
	struct coming *c = &l->uplink.coming;

	if (c->data)
		shelf_give_bytes(&l->weights.shelf, c->data, c->bytes);
	dl_coded_release(&c->update);
	c->data = NULL;
}
