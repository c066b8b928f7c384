#include "cmd/sync/pushes.h"

#include <stdlib.h>
#include <string.h>

#include "merge/gram.h"

void pushes_init(struct pushes *s, struct dl_pool *pool, struct shelf *shelf,
	const struct dl_layout *layout, struct dl_segment *const *segment,
	const size_t *segments)
{
	*s = (struct pushes){pool, shelf, layout, segment, segments, NULL, 0};
	s->first = dl_alloc_array(layout->fragments, sizeof *s->first);
}

void pushes_release(struct pushes *s)
{
	if (s->first)
		pushes_clear(s);
	free(s->first);
	s->first = NULL;
}

void pushes_clear(struct pushes *s)
{
	for (uint32_t p = 0; p < s->layout->fragments; p++)
		while (s->first[p])
			pushes_drop(s, s->first[p]);
}

int pushes_begin(struct pushes *s, uint32_t fragment, const struct dl_header *h,
	struct push **out, struct dl_err *e)
{
	struct push *push = dl_alloc(sizeof *push);

	push->fragment = fragment;
	push->bytes = 8 + h->header_size + h->data_size;
	push->size = h->data_size;
	push->packed = !dl_layout_check_record(s->layout, fragment, h, e);
	if (dl_coded_open(&push->coded, s->layout, fragment, h, NULL, e)) {
		dl_coded_release(&push->coded);
		free(push);
		return e->code;
	}
	push->data = shelf_take_bytes(s->shelf, push->size);
	push->coded.data = push->data;
	push->next = s->first[fragment];
	s->first[fragment] = push;
	arrival_begin(s, push);
	*out = push;
	return 0;
}

struct dl_contribution pushes_contribution(const struct push *push)
{
	return (struct dl_contribution){
		.delta = push->packed ? push->data : NULL,
		.read = dl_coded_read,
		.codes = dl_coded_codes,
		.ctx = &push->coded};
}

void pushes_arrived(struct pushes *s, struct push *push)
{
	const struct dl_contribution c = pushes_contribution(push);

	push->norm =
		arrival_complete(push)
			? arrival_norm(push)
			: dl_norm_fragment(s->pool, s->segment[push->fragment],
				  push->coded.tensors, &c);
	push->id = ++s->ids;
}

void pushes_drop(struct pushes *s, struct push *push)
{
	struct push **at = &s->first[push->fragment];

	while (*at != push)
		at = &(*at)->next;
	*at = push->next;
	arrival_end(s, push);
	shelf_give_bytes(s->shelf, push->data, push->size);
	dl_coded_release(&push->coded);
	free(push);
}

static struct push *find(const struct pushes *s, uint64_t id)
{
	for (uint32_t p = 0; p < s->layout->fragments; p++)
		for (struct push *push = s->first[p]; push; push = push->next)
			if (push->id == id)
				return push;
	return NULL;
}

int pushes_hold(const struct pushes *s, uint64_t id)
{
	return find(s, id) != NULL;
}

void pushes_drop_id(struct pushes *s, uint64_t id)
{
	struct push *push = find(s, id);

	if (push)
		pushes_drop(s, push);
}

static void scale(float *x, float by, size_t n)
{
	for (size_t i = 0; by != 1 && i < n; i++)
		x[i] *= by;
}

/* The pushes of one learner, already in order, added. */
static float *add(
	const struct pushes *s, const struct dl_sync_part *part, size_t parts)
{
	const struct push *push = find(s, part[0].push);
	size_t n = push->coded.elements;
	float *sum = shelf_take(s->shelf, push->fragment);
	float *next = shelf_take(s->shelf, push->fragment);

	dl_coded_decode(s->pool, &push->coded, sum);
	scale(sum, (float)part[0].scale, n);
	for (size_t i = 1; i < parts; i++) {
		dl_coded_decode(s->pool, &find(s, part[i].push)->coded, next);
		dl_merge_add(sum, part[i].scale, next, n);
	}
	shelf_give(s->shelf, push->fragment, next);
	return sum;
}

static size_t count_same(const struct dl_sync_part *part, size_t parts)
{
	size_t n = 1;

	while (n < parts && !strcmp(part[n].learner, part->learner))
		n++;
	return n;
}

/* The products of all, if each is one push and they were gathered. */
static double *find_products(
	const struct pushes *s, const struct contributions *c)
{
	const size_t tensors = s->segments[c->fragment];
	const size_t n = c->n;
	double *product = dl_alloc_array(tensors * n * n, sizeof *product);

	for (size_t k = 0; k < n * n; k++) {
		const struct push *x = c->push[k / n], *y = c->push[k % n];
		const double *sum = x && y ? arrival_products(s, x, y) : NULL;

		if (!sum) {
			free(product);
			return NULL;
		}
		for (size_t i = 0; i < tensors; i++)
			product[i * n * n + k] = sum[i];
	}
	return product;
}

void pushes_gather(struct pushes *s, const struct dl_sync_action *a,
	struct contributions *c)
{
	*c = (struct contributions){.fragment = a->fragment};
	c->item = dl_alloc_array(a->parts, sizeof *c->item);
	c->sum = dl_alloc_array(a->parts, sizeof *c->sum);
	c->push = dl_alloc_array(a->parts, sizeof *c->push);
	for (size_t i = 0, n; i < a->parts; i += n) {
		const struct dl_sync_part *part = a->part + i;
		const struct push *push = find(s, part->push);
		struct dl_contribution *to = &c->item[c->n];

		n = count_same(part, a->parts - i);
		*to = pushes_contribution(push);
		to->name = part->learner;
		to->weight = part->weight;
		to->scale = n > 1 ? 1 : part->scale;
		if (n > 1)
			to->delta = c->sum[c->n] = add(s, part, n);
		else
			c->push[c->n] = push;
		c->n++;
	}
	if (c->n <= DL_GRAM_MOST)
		c->products = find_products(s, c);
}

void pushes_gathered(struct pushes *s, struct contributions *c)
{
	for (size_t i = 0; i < c->n; i++)
		shelf_give(s->shelf, c->fragment, c->sum[i]);
	free(c->item);
	free(c->sum);
	free(c->push);
	free(c->products);
}
