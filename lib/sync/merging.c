/*
 * Merges: what each push weighs (PAPER "The method": token-weighted merging),
 * and what follows once one is committed.
 */
#include "sync/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_seq(const void *a, const void *b)
{
	const struct push *x = a, *y = b;

	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Puts those of one learner together, learners in byte order of names. A merge
 * of a thousand has about one of each, so ranks are counted, not compared. */
static void sort_by_learner(const struct dl_sync *s, struct pushes *list)
{
	struct push *sorted = dl_alloc_array(list->cap, sizeof *sorted);
	size_t *end = dl_alloc_array(s->learners, sizeof *end), sum = 0;

	for (size_t i = 0; i < list->n; i++)
		end[list->item[i].from->rank]++;
	for (size_t i = 0; i < s->learners; i++)
		sum = end[i] += sum;
	for (size_t i = list->n; i-- > 0;)
		sorted[--end[list->item[i].from->rank]] = list->item[i];
	free(end);
	free(list->item);
	list->item = sorted;
}

/* w = tokens * (tokens / steps), of all the pushes of one learner. */
static void weigh(const struct push *push, struct dl_sync_part *part, size_t n)
{
	double steps = 0, tokens = 0;

	for (size_t i = 0; i < n; i++) {
		steps += (double)push[i].steps;
		tokens += (double)push[i].tokens;
	}
	for (size_t i = 0; i < n; i++)
		part[i] = (struct dl_sync_part){
			.learner = push[i].from->name,
			.push = push[i].id,
			.weight = tokens * (tokens / steps),
			.scale = push[i].scale,
		};
}

void begin_merge(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];
	struct dl_sync_action *a;
	struct push *push;
	size_t n = f->merge.n;

	sort_by_learner(s, &f->merge);
	push = f->merge.item;
	free(f->part);
	f->part = dl_alloc_array(n, sizeof *f->part);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (push[end].from != push[i].from)
				break;
		if (end - i > 1)
			qsort(push + i, end - i, sizeof *push, by_seq);
		weigh(push + i, f->part + i, end - i);
	}
	f->merging = 1;
	f->merging_at = s->now;
	a = act(s, DL_ACT_MERGE);
	a->fragment = p;
	a->step = f->step;
	a->version = (struct dl_version){s->epoch, f->version.number + 1};
	a->part = f->part;
	a->parts = n;
}

void merge_alone(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];

	pushes_add(&f->merge, &f->alone.item[0]);
	f->alone.n--;
	memmove(f->alone.item, f->alone.item + 1,
		f->alone.n * sizeof *f->alone.item);
	begin_merge(s, p);
}

static void settle_merged(struct dl_sync *s, uint32_t p)
{
	struct fragment *f = &s->fragment[p];
	size_t n = f->merge.n;

	for (size_t i = 0; i < n; i++) {
		const struct push *push = &f->merge.item[i];
		struct learner *l = push->from;
		struct instance *in = find_instance(l, push->instance);

		if (in && in->last[p].merged < push->seq)
			in->last[p].merged = push->seq;
		l->of[p].kept--;
		l->count.merged_pushes++;
		l->count.merged_steps += push->steps;
		l->count.merged_tokens += push->tokens;
		s->contributed_steps += push->steps;
		if (!i || f->merge.item[i - 1].from != l)
			s->contributions++;
		act(s, DL_ACT_RELEASE)->push = push->id;
	}
	f->merge.n = 0;
	for (size_t i = 0; i < n; i++) {
		const struct push *push = &f->merge.item[i];
		int last = i + 1 == n || push[1].from != push->from
			|| push[1].instance != push->instance;

		if (last && push->from->connected
			&& is_current(push->from, push->instance))
			tell_settled(s, push->from, p);
	}
}

void on_merged(struct dl_sync *s, const struct dl_sync_event *ev)
{
	struct fragment *f;

	if (ev->fragment >= s->fragments)
		return;
	f = &s->fragment[ev->fragment];
	if (!f->merging)
		return;
	f->merging = 0;
	f->settled = f->step;
	f->version = (struct dl_version){s->epoch, f->version.number + 1};
	s->merges++;
	s->sync_ns = smooth(s->sync_ns, (double)(s->now - f->merging_at));
	settle_merged(s, ev->fragment);
	if (s->phase == RUNNING)
		for (size_t i = 0; i < s->heres; i++)
			send_global(s, s->here[i], ev->fragment);
	if (f->alone.n)
		merge_alone(s, ev->fragment);
}
