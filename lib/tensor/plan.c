#include "tensor/layout.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/name.h"

/* A tensor that the layout will hold. */
struct item {
	const struct dl_tensor *t;
	enum dl_rule rule;
	const char *alias;
	size_t prefix;	/* bytes of the name before the layer's number */
	uint64_t layer; /* that number, later the layer's place in order */
	uint32_t fragment;
};

struct plan {
	struct item *item; /* in byte order of names */
	size_t items;
	uint32_t fragments;
	const struct dl_plan_options *o;
	struct dl_buf notes;
	struct dl_err *e;
};

static const char *const strategies[] = {
	[DL_BALANCED] = "balanced",
	[DL_TENSOR] = "tensor",
	[DL_LAYER] = "layer",
	[DL_STRIDED] = "strided",
};

int dl_strategy_parse(const char *s, enum dl_strategy *out)
{
	for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
		if (!strcmp(s, strategies[i])) {
			*out = (enum dl_strategy)i;
			return 0;
		}
	return -1;
}

/*
 * What common models call these, as the last component of a name or the one
 * before it ("model.embed_tokens.weight", "pos_embed").
 */
static const char *const inputs[] = {"embed", "embed_in", "embed_positions",
	"embed_tokens", "embedding", "embeddings", "pos_embed",
	"position_embedding", "position_embeddings", "positional_embedding",
	"shared", "tok_embeddings", "token_embedding", "token_embeddings",
	"token_type_embeddings", "word_embeddings", "wpe", "wte", NULL};
static const char *const heads[] = {"embed_out", "lm_head", NULL};
static const char *const statistics[] = {"running_mean", "running_var", NULL};

static int listed(const char *s, size_t n, const char *const *list)
{
	for (; *list; list++)
		if (strlen(*list) == n && !memcmp(*list, s, n))
			return 1;
	return 0;
}

/* Whether one of the last two components of the name is in the list. */
static int ends_in(const struct dl_string *name, const char *const *list)
{
	size_t end = name->n;

	for (int i = 0; i < 2; i++) {
		size_t start = end;

		while (start && name->s[start - 1] != '.')
			start--;
		if (listed(name->s + start, end - start, list))
			return 1;
		if (!start)
			return 0;
		end = start - 1;
	}
	return 0;
}

static int is_head(const struct dl_string *name)
{
	static const char *const whole[] = {"output.weight", "output.bias",
		"head.weight", "head.bias", NULL};

	return ends_in(name, heads) || listed(name->s, name->n, whole);
}

static int is_input(const struct dl_string *name)
{
	return ends_in(name, inputs);
}

static enum dl_rule default_rule(const struct dl_tensor *t)
{
	if (dl_dtype_is_integer(t->dtype))
		return DL_LAST;
	if (is_input(&t->name) || is_head(&t->name))
		return DL_MEAN;
	return ends_in(&t->name, statistics) ? DL_STAT : DL_RDA;
}

/* Takes tensor t into the plan, or leaves it local. */
static void choose(
	struct plan *p, const struct dl_choices *choices, const struct dl_tensor *t)
{
	struct item *item = &p->item[p->items];
	const struct dl_plan_choice *choice =
		dl_choices_find(choices, &t->name);

	if (choice && choice->skip)
		return;
	if (!dl_dtype_is_float(t->dtype) && !dl_dtype_is_integer(t->dtype)) {
		dl_buf_str(&p->notes, "# local\t");
		dl_name_escape(&p->notes, t->name.s, t->name.n);
		dl_buf_printf(&p->notes, "\t%s\n", dl_dtype_name(t->dtype));
		return;
	}
	item->t = t;
	item->rule = choice ? choice->rule : default_rule(t);
	item->alias = choice ? choice->alias : NULL;
	p->items++;
}

static int own(const struct item *item)
{
	return item->rule != DL_ALIAS;
}

/* Largest first, ties by name, which is the order that items are in. */
static int by_size(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a,
			  *y = *(struct item *const *)b;

	if (x->t->elements != y->t->elements)
		return x->t->elements > y->t->elements ? -1 : 1;
	return x < y ? -1 : x > y;
}

struct bin {
	uint64_t load;
	uint32_t fragment;
};

static int lighter(const struct bin *a, const struct bin *b)
{
	if (a->load != b->load)
		return a->load < b->load;
	return a->fragment < b->fragment;
}

/* Puts the top of a heap of n bins, lightest on top, where it belongs. */
static void sink(struct bin *heap, size_t n)
{
	size_t at = 0, child;

	while ((child = 2 * at + 1) < n) {
		struct bin top = heap[at];

		if (child + 1 < n && lighter(&heap[child + 1], &heap[child]))
			child++;
		if (!lighter(&heap[child], &top))
			return;
		heap[at] = heap[child];
		heap[child] = top;
		at = child;
	}
}

/* The items that alone decide where things go: aliases follow later. */
static struct item **owners(const struct plan *p, size_t *n)
{
	struct item **list = dl_alloc_array(p->items, sizeof *list);

	*n = 0;
	for (size_t i = 0; i < p->items; i++)
		if (own(&p->item[i]))
			list[(*n)++] = &p->item[i];
	return list;
}

/* PAPER: greedy bin packing, at most 4/3 of the best largest fragment. */
static void balance(struct plan *p, struct item **list, size_t n)
{
	struct bin *heap;
	size_t filled = 0;

	/* An empty tensor is always added to the lightest fragment without
	 * making it heavier, so it cannot be what fills a fragment. */
	for (size_t i = 0; i < n; i++)
		filled += list[i]->t->elements > 0;
	if (p->fragments > filled)
		p->fragments = filled ? (uint32_t)filled : 1;
	heap = dl_alloc_array(p->fragments, sizeof *heap);
	for (uint32_t i = 0; i < p->fragments; i++)
		heap[i].fragment = i;
	qsort(list, n, sizeof *list, by_size);
	for (size_t i = 0; i < n; i++) {
		list[i]->fragment = heap[0].fragment;
		heap[0].load += list[i]->t->elements;
		sink(heap, p->fragments);
	}
	free(heap);
}

/* Runs of equally many tensors, in byte order of names. */
static void by_tensors(struct plan *p, struct item **list, size_t n)
{
	if (p->fragments > n)
		p->fragments = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		list[i]->fragment = (uint32_t)(i * p->fragments / n);
}

/* Finds "layers.12." and the like; 0 when the name has no layer. */
static int find_layer(struct item *item)
{
	static const char *const words[] = {
		"block", "blocks", "h", "layer", "layers", NULL};
	const char *s = item->t->name.s, *end = s + item->t->name.n, *dot;

	for (; (dot = memchr(s, '.', (size_t)(end - s))); s = dot + 1) {
		const char *digit = dot + 1;
		uint64_t number = 0;

		if (!listed(s, (size_t)(dot - s), words))
			continue;
		while (digit < end && *digit >= '0' && *digit <= '9' &&
			number < UINT32_MAX)
			number = 10 * number + (uint64_t)(*digit++ - '0');
		if (digit == dot + 1 || (digit < end && *digit != '.'))
			continue;
		item->prefix = (size_t)(dot + 1 - item->t->name.s);
		item->layer = number;
		return 1;
	}
	return 0;
}

static int by_layer(const void *a, const void *b)
{
	const struct item *x = *(struct item *const *)a,
			  *y = *(struct item *const *)b;
	struct dl_string s = {x->t->name.s, x->prefix};
	struct dl_string t = {y->t->name.s, y->prefix};
	int order = dl_string_compare(&s, &t);

	if (order)
		return order;
	return x->layer < y->layer ? -1 : x->layer > y->layer;
}

/*
 * Whole layers: in contiguous groups, or dealt out in turn. What belongs to no
 * layer goes with the first (input embeddings) or the last (all else).
 */
static void by_layers(struct plan *p, struct item **list, size_t n)
{
	struct item **layered = dl_alloc_array(n, sizeof *layered);
	uint64_t layers = 0, place;
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (find_layer(list[i]))
			layered[count++] = list[i];
	qsort(layered, count, sizeof *layered, by_layer);
	for (size_t i = count; i-- > 0;)
		layers += !i || by_layer(&layered[i - 1], &layered[i]);
	place = layers;
	for (size_t i = count; i-- > 0;) {
		int first = !i || by_layer(&layered[i - 1], &layered[i]);

		layered[i]->layer = place - 1;
		place -= (uint64_t)first;
	}
	for (size_t i = 0; i < n; i++)
		if (!list[i]->prefix)
			list[i]->layer = layers && !is_input(&list[i]->t->name)
						 ? layers - 1
						 : 0;
	free(layered);
	if (!layers)
		layers = 1;
	if (p->fragments > layers)
		p->fragments = (uint32_t)layers;
	for (size_t i = 0; i < n; i++)
		list[i]->fragment =
			(uint32_t)(p->o->strategy == DL_STRIDED
					   ? list[i]->layer % p->fragments
					   : list[i]->layer * p->fragments /
						     layers);
}

static int by_name(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return dl_string_compare(&x->t->name, &y->t->name);
}

/* Aliases go to the fragment of the tensor that they are tied to. */
static int follow(struct plan *p)
{
	char name[80];

	for (size_t i = 0; i < p->items; i++) {
		struct item *item = &p->item[i], *target;
		struct dl_tensor t;
		struct item key = {.t = &t};

		if (own(item))
			continue;
		t.name = (struct dl_string){item->alias, strlen(item->alias)};
		target = bsearch(
			&key, p->item, p->items, sizeof *p->item, by_name);
		if (!target || !own(target))
			return dl_fail(p->e, DL_DATA,
				"cannot tie a tensor to \"%s\": %s",
				dl_scrub(name, sizeof name, t.name.s, t.name.n),
				target ? "it is tied itself"
				       : "it is not in the layout");
		item->fragment = target->fragment;
	}
	return 0;
}

static int assign(struct plan *p)
{
	size_t n;
	struct item **list = owners(p, &n);
	int rc = 0;

	p->fragments = p->o->fragments ? p->o->fragments : 1;
	if (!n)
		rc = dl_fail(p->e, DL_DATA, "no tensor to plan");
	else if (p->o->strategy == DL_BALANCED)
		balance(p, list, n);
	else if (p->o->strategy == DL_TENSOR)
		by_tensors(p, list, n);
	else
		by_layers(p, list, n);
	free(list);
	return rc ? rc : follow(p);
}

/* The plan as text, which dl_layout_parse then makes a layout of: one place
 * checks layouts, wherever they come from. */
static void put_plan(const struct plan *p, struct dl_buf *out)
{
	dl_buf_printf(out, "# format\t1\n# strategy\t%s\n",
		strategies[p->o->strategy]);
	dl_buf_add(out, p->notes.data, p->notes.len);
	for (size_t i = 0; i < p->items; i++) {
		const struct item *item = &p->item[i];
		struct dl_layout_tensor t = {
			.name = item->t->name,
			.dtype = item->t->dtype,
			.rank = item->t->rank,
			.shape = item->t->shape,
			.elements = item->t->elements,
			.fragment = item->fragment,
			.rule = item->rule,
		};

		if (item->alias)
			t.alias = (struct dl_string){
				item->alias, strlen(item->alias)};
		dl_layout_put_tensor(&t, out);
	}
}

int dl_layout_plan(struct dl_layout *l, const struct dl_model *m,
	const struct dl_plan_options *o, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	struct plan p = {.o = o, .e = e};
	struct dl_choices choices;
	int rc;

	memset(l, 0, sizeof *l);
	p.item = dl_alloc_array(m->tensors, sizeof *p.item);
	dl_choices_init(&choices, o->choice, o->choices);
	for (size_t i = 0; i < m->tensors; i++)
		choose(&p, &choices, &m->tensor[i].info);
	dl_choices_release(&choices);
	rc = assign(&p);
	if (!rc) {
		put_plan(&p, &text);
		rc = dl_layout_parse(l, (const char *)text.data, text.len, e);
	}
	free(p.item);
	dl_buf_free(&p.notes);
	dl_buf_free(&text);
	return rc;
}
