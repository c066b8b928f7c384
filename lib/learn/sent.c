/* Pushes that are not settled: kept in case their syncer dies. */
#include "learn/core.h"

#include <string.h>

static void forget(struct fragment *f, size_t i)
{
	f->sents--;
	memmove(f->sent + i, f->sent + i + 1, (f->sents - i) * sizeof *f->sent);
}

void learn_settle(struct dl_learn *l, uint32_t p, size_t i)
{
	struct fragment *f = &l->fragment[p];
	struct dl_learn_action *a = learn_act(l, DL_LA_RELEASE);

	a->fragment = p;
	a->seq = f->sent[i].seq;
	forget(f, i);
}

void learn_settle_all(struct dl_learn *l, uint32_t p)
{
	while (l->fragment[p].sents)
		learn_settle(l, p, 0);
}

void learn_on_failed(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];

	for (size_t i = 0; i < f->sents; i++) {
		if (f->sent[i].seq != ev->seq)
			continue;
		l->pushed -= f->sent[i].steps;
		l->lost += f->sent[i].steps;
		forget(f, i);
		/* It was never sent, so the next can have its number, and who
		 * takes pushes in order finds no gap. */
		if (f->seq == ev->seq)
			f->seq--;
		return;
	}
}
