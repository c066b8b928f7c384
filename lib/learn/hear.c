/* What a syncer says, and what it does to the fragments it serves. */
#include "learn/core.h"

/* Sends again what the syncer has not: it lost it, or never got it. What it has
 * and was not heard to take, the answer lost with a link, may wait for a round:
 * nothing is held for that (with wait), which could be for ever. */
static void resend(struct dl_learn *l, uint32_t p, uint64_t taken)
{
	struct fragment *f = &l->fragment[p];

	for (size_t i = 0; i < f->sents; i++) {
		struct sent *sent = &f->sent[i];
		struct dl_learn_action *a;

		if (sent->seq <= taken) {
			sent->waiting |= !sent->taken;
			sent->taken = 1;
			continue;
		}
		sent->taken = sent->waiting = 0;
		if (sent->step > clock_of(l, p))
			sent->step = clock_of(l, p);
		a = learn_act(l, DL_LA_RESEND);
		a->syncer = syncer_of(l, p);
		a->fragment = p;
		a->seq = sent->seq;
		a->step = sent->step;
		a->version = f->newest;
	}
}

/*
 * The version of f is what the syncer calls it. One that the syncer will only
 * make is of a history that it has lost, its store set back: what comes from
 * the syncer now replaces it, though the number is lower.
 */
static void rebase(
	struct fragment *f, struct dl_version origin, struct dl_version version)
{
	if (f->version.epoch && !dl_version_cmp(f->version, origin))
		f->version = version;
	if (dl_version_cmp(f->version, version) > 0)
		f->version = (struct dl_version){0, 0};
	if (f->waiting && dl_version_cmp(f->waiting_version, version) > 0)
		f->waiting = 0;
}

void learn_on_welcome(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct syncer *s = &l->syncer[ev->syncer];

	*s = (struct syncer){.connected = 1, .clock = ev->clock};
	for (uint32_t p = 0; p < l->fragments; p++) {
		struct fragment *f = &l->fragment[p];

		if (syncer_of(l, p) != ev->syncer)
			continue;
		/* Opens of before are void, and after a clock that was set
		 * back the next must not look old. */
		f->opened = 0;
		if (f->pushed_step > s->clock)
			f->pushed_step = s->clock;
		f->newest = ev->versions[p];
		rebase(f, ev->origins[p], ev->versions[p]);
		resend(l, p, ev->seqs[p]);
	}
}

void learn_on_global(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];

	if (ev->final)
		learn_settle_all(l, ev->fragment);
	if (dl_version_cmp(ev->version, f->newest) > 0)
		f->newest = ev->version;
	if (dl_version_cmp(ev->version, f->version) < 0 ||
		(f->waiting &&
			dl_version_cmp(ev->version, f->waiting_version) < 0))
		return;
	/* The same again matters only as the final word. */
	if (!ev->final && !dl_version_cmp(ev->version, f->version))
		return;
	f->waiting = 1;
	f->final = ev->final;
	f->waiting_version = ev->version;
	f->waiting_step = ev->step;
	l->called[ev->fragment] = 1;
}

void learn_on_taken(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];
	int kept = ev->taken == DL_TAKEN_ROUND ||
		   ev->taken == DL_TAKEN_WAITING || ev->taken == DL_TAKEN_NOW;

	if (ev->taken == DL_TAKEN_SETTLED) {
		while (f->sents && f->sent[0].seq <= ev->seq)
			learn_settle(l, ev->fragment, 0);
		return;
	}
	for (size_t i = 0; i < f->sents; i++) {
		if (f->sent[i].seq != ev->seq)
			continue;
		f->sent[i].taken = 1;
		f->sent[i].waiting = ev->taken == DL_TAKEN_WAITING;
		if (!kept)
			learn_settle(l, ev->fragment, i);
		return;
	}
}

/* Nothing more will come from that syncer, nor be taken there. */
void learn_on_bye(struct dl_learn *l, const struct dl_learn_event *ev)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		if (syncer_of(l, p) != ev->syncer)
			continue;
		learn_settle_all(l, p);
		make_done(l, p);
	}
}
