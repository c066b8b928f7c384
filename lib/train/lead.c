#include "train/lead.h"

enum act { STEP, LOSS, VALUES, STATE, END };

struct order {
	uint64_t act;
	uint64_t from, to; /* tokens or values */
	uint64_t clock, tokens, updates, since;
};

/* 1 when there are others, who have got it. */
static int give(struct dl_training *t, enum act act, uint64_t from, uint64_t to)
{
	struct order o = {act, from, to, t->clock, t->tokens, t->adamw.updates,
		t->adamw.since};

	if (!t->ranks || dl_ranks_rank(t->ranks))
		return 0;
	dl_ranks_order(t->ranks, &o, sizeof o);
	return 1;
}

static void share(struct dl_training *t, float *x, uint64_t from, uint64_t to)
{
	dl_ranks_share(t->ranks, x + from, (to - from) * sizeof *x);
}

static void share_state(struct dl_training *t)
{
	share(t, t->values, 0, t->m->size);
	share(t, t->adamw.first, 0, t->m->size);
	share(t, t->adamw.second, 0, t->m->size);
}

void dl_lead_step(struct dl_training *t)
{
	give(t, STEP, 0, 0);
}

void dl_lead_loss(struct dl_training *t, size_t first, size_t end)
{
	give(t, LOSS, first, end);
}

void dl_lead_values(struct dl_training *t, size_t at, size_t n)
{
	if (give(t, VALUES, at, at + n))
		share(t, t->values, at, at + n);
}

void dl_lead_state(struct dl_training *t)
{
	if (give(t, STATE, 0, 0))
		share_state(t);
}

void dl_lead_end(struct dl_training *t)
{
	give(t, END, 0, 0);
}

static void take_counters(struct dl_training *t, const struct order *o)
{
	t->clock = o->clock;
	t->tokens = o->tokens;
	t->adamw.updates = o->updates;
	t->adamw.since = o->since;
}

void dl_follow(struct dl_training *t)
{
	struct order o;

	do {
		dl_ranks_order(t->ranks, &o, sizeof o);
		take_counters(t, &o);
		if (o.act == STEP)
			dl_training_step(t);
		else if (o.act == LOSS)
			dl_training_loss(t, o.from, o.to);
		else if (o.act == VALUES)
			share(t, t->values, o.from, o.to);
		else if (o.act == STATE)
			share_state(t);
	} while (o.act != END);
}
