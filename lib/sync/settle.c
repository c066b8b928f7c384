/* Which pushes a learner need not keep any longer. */
#include "sync/core.h"

static const struct push *find_in(const struct pushes *list,
	const struct learner *l, uint64_t instance, uint64_t seq)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->item[i].from == l
			&& list->item[i].instance == instance
			&& list->item[i].seq >= seq)
			return &list->item[i];
	return NULL;
}

/* The first of l's pushes of p from seq on that is not settled, in whichever
 * list it is; NULL when there is none. */
const struct push *find_pending(const struct fragment *f,
	const struct learner *l, uint64_t instance, uint64_t seq,
	enum dl_taken *taken)
{
	const struct {
		const struct pushes *list;
		enum dl_taken taken;
	} where[] = {{&f->merge, DL_TAKEN_ROUND}, {&f->round, DL_TAKEN_ROUND},
		{&f->alone, DL_TAKEN_NOW}, {&f->waiting, DL_TAKEN_WAITING}};
	const struct push *first = NULL;

	for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
		const struct push *push =
			find_in(where[i].list, l, instance, seq);

		if (!push || (first && first->seq < push->seq))
			continue;
		first = push;
		*taken = where[i].taken;
	}
	return first;
}

uint64_t settled(const struct dl_sync *s, const struct learner *l, uint32_t p)
{
	const struct instance *in = &l->instance[l->instances - 1];
	enum dl_taken taken;
	const struct push *first =
		find_pending(&s->fragment[p], l, in->id, 0, &taken);

	return first ? first->seq - 1 : in->last[p].taken;
}

/* Tells l which of its pushes of p it need not keep. */
void tell_settled(struct dl_sync *s, const struct learner *l, uint32_t p)
{
	uint64_t seq = settled(s, l, p);
	struct dl_sync_action *a;

	if (!seq)
		return;
	a = act_to(s, DL_ACT_TAKEN, l);
	a->fragment = p;
	a->seq = seq;
	a->taken = DL_TAKEN_SETTLED;
}
