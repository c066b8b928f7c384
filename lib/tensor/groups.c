#include "tensor/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/arith.h"

static int check(
	const struct dl_layout *l, const struct dl_header *h, struct dl_err *e)
{
	char name[80];

	for (size_t i = 0; i < l->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];
		const struct dl_tensor *found =
			dl_header_find(h, t->name.s, t->name.n);

		dl_scrub(name, sizeof name, t->name.s, t->name.n);
		if (!found && t->rule != DL_ALIAS)
			return dl_fail(
				e, DL_DATA, "tensor \"%s\" is missing", name);
		if (!found)
			continue;
		if (!dl_layout_same_shape(t, found))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" has another shape than in the "
				"layout",
				name);
		if (!dl_arith_able(found->dtype))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" is %s, no number", name,
				dl_dtype_name(found->dtype));
	}
	return 0;
}

static size_t longest_name(const struct dl_layout *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->tensors; i++)
		if (l->tensor[i].name.n > n)
			n = l->tensor[i].name.n;
	return n;
}

/* The group of a tensor: its whole name, then what follows each dot. */
static size_t group_of(
	const struct dl_layout *l, size_t longest, const struct dl_string *name)
{
	const char *s = name->s, *end = name->s + name->n, *dot;

	for (;;) {
		const struct dl_layout_tensor *t = NULL;

		if ((size_t)(end - s) <= longest)
			t = dl_layout_find(l, s, (size_t)(end - s));
		if (t)
			return t->fragment;
		dot = memchr(s, '.', (size_t)(end - s));
		if (!dot)
			return l->fragments;
		s = dot + 1;
	}
}

int dl_groups_make(struct dl_groups *g, const struct dl_layout *l,
	const struct dl_header *h, struct dl_err *e)
{
	size_t longest = longest_name(l), n = h->tensors, *group, *next;

	*g = (struct dl_groups){.groups = (size_t)l->fragments + 1};
	if (check(l, h, e))
		return e->code;
	g->first = dl_alloc_array(g->groups + 1, sizeof *g->first);
	g->member = dl_alloc_array(n, sizeof *g->member);
	group = dl_alloc_array(n, sizeof *group);
	next = dl_alloc_array(g->groups, sizeof *next);
	for (size_t i = 0; i < n; i++) {
		group[i] = group_of(l, longest, &h->tensor[i].name);
		g->first[group[i] + 1]++;
	}
	for (size_t i = 0; i < g->groups; i++) {
		next[i] = g->first[i];
		g->first[i + 1] += g->first[i];
	}
	for (size_t i = 0; i < n; i++)
		g->member[next[group[i]]++] = i;
	free(group);
	free(next);
	return 0;
}

void dl_groups_release(struct dl_groups *g)
{
	free(g->first);
	free(g->member);
	*g = (struct dl_groups){0};
}

int dl_groups_range(const struct dl_groups *g, const struct dl_header *h,
	size_t *at, size_t end, uint64_t *offset, uint64_t *bytes)
{
	*bytes = 0;
	for (; *at < end; ++*at) {
		const struct dl_tensor *t = &h->tensor[g->member[*at]];

		if (!*bytes)
			*offset = t->offset;
		else if (t->offset != *offset + *bytes)
			break;
		*bytes += t->size;
	}
	return *bytes > 0;
}

int dl_groups_same(const struct dl_header *a, const struct dl_header *b)
{
	if (a->tensors != b->tensors || a->data_size != b->data_size)
		return 0;
	for (size_t i = 0; i < a->tensors; i++) {
		const struct dl_tensor *t = &a->tensor[i], *u = &b->tensor[i];

		if (dl_string_compare(&t->name, &u->name) ||
			t->dtype != u->dtype || t->offset != u->offset ||
			t->rank != u->rank ||
			memcmp(t->shape, u->shape, t->rank * sizeof *t->shape))
			return 0;
	}
	return 1;
}
