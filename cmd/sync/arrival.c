#include "cmd/sync/arrival.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "cmd/sync/pushes.h"
#include "merge/gram.h"

/* The bytes of data by which t's elements up to that one are there. */
static uint64_t end_of(const struct dl_coded *c,
	const struct dl_coded_tensor *t, uint64_t elements)
{
	uint64_t codes = t->codes + dl_codec_bytes(t->codec, elements);
	uint64_t scales =
		t->scales + 2 * dl_codec_scales(t->codec, c->block, elements);

	return dl_codec_is_scaled(t->codec) && scales > codes ? scales : codes;
}

struct ending {
	uint64_t end;
	size_t tensor;
};

static int by_end(const void *a, const void *b)
{
	const struct ending *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->tensor < y->tensor ? -1 : 1;
}

static void put_in_order(struct push *push)
{
	const struct dl_coded *c = &push->coded;
	struct ending *end = dl_alloc_array(c->tensors, sizeof *end);

	for (size_t i = 0; i < c->tensors; i++)
		end[i] = (struct ending){
			end_of(c, &c->tensor[i], c->tensor[i].elements), i};
	qsort(end, c->tensors, sizeof *end, by_end);
	for (size_t i = 0; i < c->tensors; i++)
		push->arrival.order[i] = end[i].tensor;
	free(end);
}

static void add_product(struct push *push, const struct push *with)
{
	struct product *p = dl_alloc(sizeof *p);

	p->with = with;
	p->sum = dl_alloc_array(push->coded.tensors, sizeof *p->sum);
	p->next = push->arrival.product;
	push->arrival.product = p;
}

void arrival_begin(struct pushes *s, struct push *push)
{
	struct arrival *a = &push->arrival;
	size_t n = push->coded.tensors, others = 1;

	a->order = dl_alloc_array(n, sizeof *a->order);
	a->done = dl_alloc_array(n, sizeof *a->done);
	put_in_order(push);
	add_product(push, push);
	for (const struct push *with = s->first; with; with = with->next)
		if (with != push && with->fragment == push->fragment &&
			others++ < DL_GRAM_MOST)
			add_product(push, with);
}

/* Of n elements of tensor i: what is taken at once begins a block of codes. */
static struct dl_codes codes_of(
	const struct push *push, size_t i, uint64_t at, size_t n)
{
	struct dl_codes codes = {0};
	int code = dl_coded_codes(
		&push->coded, push->coded.tensor[i].offset + at, n, &codes);

	assert(!code);
	(void)code;
	return codes;
}

/* Adds the block of tensor i to p, if both have it. */
static void add_block(const struct push *push, struct product *p,
	const struct push *with, size_t i, uint64_t at, size_t n,
	const struct dl_codes *x)
{
	struct dl_codes y;

	if (with == push) {
		p->sum[i] += dl_gram_block(x, x, n);
	} else if (with->arrival.done[i] >= at + n) {
		y = codes_of(with, i, at, n);
		p->sum[i] += dl_gram_block(x, &y, n);
	}
}

/* A product is with whoever began later, and its block is added by whoever has
 * it later. */
static void take_block(struct pushes *s, struct push *push, size_t i, size_t n)
{
	const struct dl_segment *segment = &s->segment[push->fragment][i];
	uint64_t at = push->arrival.done[i];
	const struct dl_codes x = codes_of(push, i, at, n);

	for (struct product *p = push->arrival.product; p; p = p->next)
		if (p->with == push || segment->rule == DL_RDA)
			add_block(push, p, p->with, i, at, n, &x);
	for (struct push *later = s->first; later != push; later = later->next)
		for (struct product *p = later->arrival.product; p; p = p->next)
			if (p->with == push && segment->rule == DL_RDA)
				add_block(push, p, later, i, at, n, &x);
	push->arrival.done[i] = at + n;
}

void arrival_take(struct pushes *s, struct push *push, uint64_t bytes)
{
	const struct dl_coded *c = &push->coded;
	struct arrival *a = &push->arrival;

	while (a->at < c->tensors) {
		size_t i = a->order[a->at];
		const struct dl_coded_tensor *t = &c->tensor[i];
		uint64_t left = t->elements - a->done[i];
		size_t n =
			left < DL_MERGE_BLOCK ? (size_t)left : DL_MERGE_BLOCK;

		if (end_of(c, t, a->done[i] + n) > bytes)
			return;
		if (n)
			take_block(s, push, i, n);
		a->at += n == left;
	}
}

int arrival_complete(const struct push *push)
{
	return push->arrival.at == push->coded.tensors;
}

static void drop_product(struct push *push, const struct push *with)
{
	struct product **at = &push->arrival.product, *p;

	while ((p = *at)) {
		if (with && p->with != with) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p->sum);
		free(p);
	}
}

void arrival_end(struct pushes *s, struct push *push)
{
	for (struct push *other = s->first; other; other = other->next)
		drop_product(other, push);
	drop_product(push, NULL);
	free(push->arrival.order);
	free(push->arrival.done);
}

static const double *find(const struct push *push, const struct push *with)
{
	const struct product *p = push->arrival.product;

	while (p && p->with != with)
		p = p->next;
	return p ? p->sum : NULL;
}

double arrival_norm(const struct push *push)
{
	const double *square = find(push, push);
	double sum = 0;

	for (size_t i = 0; i < push->coded.tensors; i++)
		sum += square[i];
	return sqrt(sum);
}

const double *arrival_products(const struct push *x, const struct push *y)
{
	const double *sum;

	if (!arrival_complete(x) || !arrival_complete(y))
		return NULL;
	sum = find(x, y);
	return sum ? sum : find(y, x);
}
