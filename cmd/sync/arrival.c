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
	size_t n = push->coded.tensors;

	p->with = with;
	p->done = dl_alloc_array(n, sizeof *p->done);
	p->sum = dl_alloc_array(n, sizeof *p->sum);
	p->next = push->arrival.product;
	push->arrival.product = p;
}

void arrival_begin(struct pushes *s, struct push *push)
{
	struct arrival *a = &push->arrival;
	size_t n = push->coded.tensors, others = 1;
	const struct push *with = s->first[push->fragment];

	a->order = dl_alloc_array(n, sizeof *a->order);
	a->done = dl_alloc_array(n, sizeof *a->done);
	a->square = dl_alloc_array(n, sizeof *a->square);
	put_in_order(push);
	for (; with; with = with->next)
		if (with != push && others++ < DL_GRAM_MOST)
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

/* The products over a block of n elements of tensor i, from `at` on, of m
 * pushes. */
struct block {
	struct push *const *push;
	size_t m, i;
	uint64_t at;
	size_t n;
};

/* How many are lacking. */
static size_t lacking(const struct block *b)
{
	const struct product *p;
	size_t count = 0;

	for (size_t j = 0; j < b->m; j++)
		for (p = b->push[j]->arrival.product; p; p = p->next)
			count += p->done[b->i] == b->at;
	return count;
}

/* Of all pairs (x, y >= x) in order. */
static void multiply_all(const struct block *b, double *sum)
{
	struct dl_contribution from[DL_GRAM_MOST];
	const struct dl_contribution *who[DL_GRAM_MOST] = {NULL};

	for (size_t j = 0; j < b->m; j++) {
		from[j] = pushes_contribution(b->push[j]);
		who[j] = &from[j];
	}
	dl_gram_pairs(who, b->m, b->push[0]->coded.tensor[b->i].offset + b->at,
		b->n, sum);
}

static double multiply(const struct block *b, size_t x, size_t y)
{
	const struct dl_codes a = codes_of(b->push[x], b->i, b->at, b->n),
			      c = codes_of(b->push[y], b->i, b->at, b->n);

	return dl_gram_block(&a, &c, b->n);
}

/* They become part of the sums that lack them. All at once is faster, unless
 * it is one push that comes after the others. */
static void add_products(const struct block *b)
{
	double sum[DL_GRAM_MOST * (DL_GRAM_MOST + 1) / 2];
	size_t m = b->m;
	int all = lacking(b) >= m;

	if (all)
		multiply_all(b, sum);
	for (size_t j = 0; j < m; j++)
		for (struct product *p = b->push[j]->arrival.product; p;
			p = p->next) {
			size_t k = p->with->arrival.place, x = j < k ? j : k,
			       y = j < k ? k : j;

			if (p->done[b->i] != b->at)
				continue;
			p->sum[b->i] += all ? sum[x * m - x * (x + 1) / 2 + y]
					    : multiply(b, x, y);
			p->done[b->i] = b->at + b->n;
		}
}

/* A block of tensor i, if it is there of all pushes of that fragment; whoever
 * is the last to have it finds that so. */
static void take_products(
	struct pushes *s, uint32_t fragment, size_t i, uint64_t at, size_t n)
{
	struct push *who[DL_GRAM_MOST], *push = s->first[fragment];
	size_t m = 0;

	if (s->segment[fragment][i].rule != DL_RDA)
		return;
	for (; push; push = push->next) {
		if (push->arrival.done[i] < at + n || m == DL_GRAM_MOST)
			return;
		push->arrival.place = m;
		who[m++] = push;
	}
	if (m > 1)
		add_products(&(struct block){who, m, i, at, n});
}

static size_t block_at(const struct push *push, size_t i, uint64_t at)
{
	uint64_t left = push->coded.tensor[i].elements - at;

	return left < DL_MERGE_BLOCK ? (size_t)left : DL_MERGE_BLOCK;
}

static void take_block(struct pushes *s, struct push *push, size_t i, size_t n)
{
	struct arrival *a = &push->arrival;
	uint64_t at = a->done[i];
	const struct dl_codes x = codes_of(push, i, at, n);

	a->square[i] += dl_gram_block(&x, &x, n);
	a->done[i] = at + n;
	take_products(s, push->fragment, i, at, n);
}

void arrival_take(struct pushes *s, struct push *push, uint64_t bytes)
{
	const struct dl_coded *c = &push->coded;
	struct arrival *a = &push->arrival;

	while (a->at < c->tensors) {
		size_t i = a->order[a->at];
		const struct dl_coded_tensor *t = &c->tensor[i];
		size_t n = block_at(push, i, a->done[i]);

		if (end_of(c, t, a->done[i] + n) > bytes)
			return;
		if (n)
			take_block(s, push, i, n);
		a->at += a->done[i] == t->elements;
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
		free(p->done);
		free(p->sum);
		free(p);
	}
}

/* The others waited for blocks that this one did not have. */
static void take_waiting(struct pushes *s, const struct push *gone)
{
	for (size_t i = 0; i < gone->coded.tensors; i++)
		for (uint64_t at = gone->arrival.done[i], n;
			(n = block_at(gone, i, at)); at += n)
			take_products(s, gone->fragment, i, at, (size_t)n);
}

void arrival_end(struct pushes *s, struct push *push)
{
	struct push *other = s->first[push->fragment];

	for (; other; other = other->next)
		drop_product(other, push);
	if (!arrival_complete(push))
		take_waiting(s, push);
	drop_product(push, NULL);
	free(push->arrival.order);
	free(push->arrival.done);
	free(push->arrival.square);
}

double arrival_norm(const struct push *push)
{
	double sum = 0;

	for (size_t i = 0; i < push->coded.tensors; i++)
		sum += push->arrival.square[i];
	return sqrt(sum);
}

static const struct product *find(
	const struct push *push, const struct push *with)
{
	const struct product *p = push->arrival.product;

	while (p && p->with != with)
		p = p->next;
	return p;
}

const double *arrival_products(
	const struct pushes *s, const struct push *x, const struct push *y)
{
	const struct dl_segment *segment = s->segment[x->fragment];
	const struct product *p;

	if (!arrival_complete(x) || !arrival_complete(y))
		return NULL;
	if (x == y)
		return x->arrival.square;
	p = find(x, y);
	if (!p)
		p = find(y, x);
	for (size_t i = 0; p && i < x->coded.tensors; i++)
		if (segment[i].rule == DL_RDA &&
			p->done[i] < x->coded.tensor[i].elements)
			return NULL;
	return p ? p->sum : NULL;
}
