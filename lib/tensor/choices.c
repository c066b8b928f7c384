#include "tensor/choices.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

static int compare(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_plan_choice *choice = ctx;

	return strcmp(choice[a].pattern, choice[b].pattern);
}

void dl_choices_init(
	struct dl_choices *c, struct dl_plan_choice *choice, size_t n)
{
	uint32_t *temp = dl_alloc_array(n / 2, sizeof *temp);

	*c = (struct dl_choices){.choice = choice,
		.pattern = dl_alloc_array(n, sizeof *c->pattern),
		.name = dl_alloc_array(n, sizeof *c->name)};
	for (size_t i = 0; i < n; i++) {
		choice[i].matched = 0;
		if (strpbrk(choice[i].pattern, "*?[\\"))
			c->pattern[c->patterns++] = (uint32_t)i;
		else
			c->name[c->names++] = (uint32_t)i;
	}
	dl_sort(c->name, temp, c->names, compare, choice);
	free(temp);
}

void dl_choices_release(struct dl_choices *c)
{
	free(c->pattern);
	free(c->name);
}

/* The place of the first name that is not below s. */
static size_t first_not_below(const struct dl_choices *c, const char *s)
{
	size_t low = 0, high = c->names;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(c->choice[c->name[mid]].pattern, s) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Names that hold NUL are matched up to it, as fnmatch has it. */
const struct dl_plan_choice *dl_choices_find(
	const struct dl_choices *c, const struct dl_string *name)
{
	struct dl_plan_choice *found = NULL, *x;

	for (size_t i = 0; i < c->patterns; i++) {
		x = &c->choice[c->pattern[i]];
		if (fnmatch(x->pattern, name->s, 0))
			continue;
		x->matched = 1;
		found = x;
	}
	/* Equal ones are in order. */
	for (size_t i = first_not_below(c, name->s); i < c->names; i++) {
		x = &c->choice[c->name[i]];
		if (strcmp(x->pattern, name->s))
			break;
		x->matched = 1;
		if (!found || x > found)
			found = x;
	}
	return found;
}
