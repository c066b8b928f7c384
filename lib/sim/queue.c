#include "sim/queue.h"

#include <stdlib.h>

#include "base/mem.h"

static int before(const struct dl_queue_item *a, const struct dl_queue_item *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void dl_queue_put(struct dl_queue *q, int64_t at, void *what)
{
	struct dl_queue_item new = {at, q->order++, what};
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

void *dl_queue_take(struct dl_queue *q, int64_t *at)
{
	struct dl_queue_item first, last;
	size_t i = 0;

	if (!q->n)
		return NULL;
	first = q->item[0];
	last = q->item[--q->n];
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
	*at = first.at;
	return first.what;
}

void dl_queue_release(struct dl_queue *q)
{
	free(q->item);
	*q = (struct dl_queue){0};
}
