/*
 * A newcomer: its trainer goes on from the state of a peer, its anchors are the
 * values in it and its counters are 0, so that what the peer has not sent is
 * not sent twice. It makes no step before it has nearly what everybody has.
 */
#include "learn/core.h"

void learn_on_state(struct dl_learn *l, const struct dl_learn_event *ev)
{
	for (uint32_t i = 0; i < l->config.syncers; i++)
		l->syncer[i].clock = ev->clock;
	for (uint32_t p = 0; p < l->fragments; p++)
		l->fragment[p].version = ev->versions[p];
	l->trainer_clock = ev->clock;
	l->loaded = l->at_boundary = l->newcomer = 1;
	learn_act(l, DL_LA_IMPORT);
	learn_act(l, DL_LA_CLOCK);
}

/* Its syncer takes the values to be here. */
static void want(struct dl_learn *l, uint32_t p)
{
	struct dl_learn_action *a = learn_act(l, DL_LA_WANT);

	a->syncer = syncer_of(l, p);
	a->fragment = p;
}

/* The trainer did not get far with it: all values come from the syncer. */
void learn_forget_state(struct dl_learn *l)
{
	l->newcomer = 0;
	for (uint32_t p = 0; p < l->fragments; p++) {
		struct fragment *f = &l->fragment[p];

		if (f->done)
			continue;
		f->version = (struct dl_version){0, 0};
		if (!f->waiting && l->syncer[syncer_of(l, p)].connected)
			want(l, p);
	}
}

/* More than one version, or not known to be less? */
int learn_is_behind(const struct fragment *f)
{
	return !f->newest.epoch || f->version.epoch != f->newest.epoch ||
	       f->version.number + 1 < f->newest.number;
}
