#include "sim/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int before(const struct dl_queue_item *a, const struct dl_queue_item *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put_in_heap(struct dl_queue *q, struct dl_queue_item new)
{
	size_t i = q->n++;

	if (q->n > q->cap) {
		q->cap = q->cap ? 2 * q->cap : 64;
		q->item = dl_resize(q->item, q->cap, sizeof *q->item);
	}
	for (size_t up; i > 0 && before(&new, &q->item[up = (i - 1) / 2]);
		i = up)
		q->item[i] = q->item[up];
	q->item[i] = new;
}

void dl_queue_put(struct dl_queue *q, int64_t at, void *what)
{
	put_in_heap(q, (struct dl_queue_item){at, q->order++, what});
}

static void put_in_line(struct dl_queue_line *l, struct dl_queue_item new)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;

		l->item = dl_resize(l->item, cap, sizeof *l->item);
		/* What had come round goes on behind the old end. */
		memcpy(l->item + l->cap, l->item, l->first * sizeof *l->item);
		l->cap = cap;
	}
	l->item[(l->first + l->n++) & (l->cap - 1)] = new;
}

void dl_queue_put_after(
	struct dl_queue *q, int64_t now, int64_t after, void *what)
{
	struct dl_queue_item new = {now + after, q->order++, what};

	for (int i = 0; i < DL_QUEUE_LINES; i++) {
		struct dl_queue_line *l = &q->line[i];

		if (l->n && l->after != after)
			continue;
		l->after = after;
		put_in_line(l, new);
		return;
	}
	put_in_heap(q, new);
}

/* The line whose first item comes next; NULL when all are empty. */
static struct dl_queue_line *next_line(struct dl_queue *q)
{
	struct dl_queue_line *next = NULL;

	for (int i = 0; i < DL_QUEUE_LINES; i++) {
		struct dl_queue_line *l = &q->line[i];

		if (l->n && (!next || before(&l->item[l->first],
					      &next->item[next->first])))
			next = l;
	}
	return next;
}

static struct dl_queue_item take_from_heap(struct dl_queue *q)
{
	struct dl_queue_item first = q->item[0], last = q->item[--q->n];
	size_t i = 0;

	for (;;) {
		size_t down = 2 * i + 1;

		if (down + 1 < q->n &&
			before(&q->item[down + 1], &q->item[down]))
			down++;
		if (down >= q->n || !before(&q->item[down], &last))
			break;
		q->item[i] = q->item[down];
		i = down;
	}
	q->item[i] = last;
	return first;
}

void *dl_queue_take(struct dl_queue *q, int64_t *at)
{
	struct dl_queue_line *l = next_line(q);
	struct dl_queue_item next;

	if (l && (!q->n || before(&l->item[l->first], &q->item[0]))) {
		next = l->item[l->first];
		l->first = (l->first + 1) & (l->cap - 1);
		l->n--;
		q->last = l;
	} else if (q->n) {
		next = take_from_heap(q);
		q->last = NULL;
	} else {
		return NULL;
	}
	*at = next.at;
	return next.what;
}

const void *dl_queue_guess(const struct dl_queue *q, size_t k)
{
	const struct dl_queue_line *l = q->last;

	if (!l)
		return k < q->n ? q->item[k].what : NULL;
	return k < l->n ? l->item[(l->first + k) & (l->cap - 1)].what : NULL;
}

void dl_queue_release(struct dl_queue *q)
{
	free(q->item);
	for (int i = 0; i < DL_QUEUE_LINES; i++)
		free(q->line[i].item);
	*q = (struct dl_queue){0};
}
