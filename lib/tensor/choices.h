/*
 * What the caller of a plan wants of tensors whose names match: an ordered list
 * of which the last that matches holds. Patterns without special characters
 * are names and are looked up, so that thousands of them cost no more than one
 * look each.
 */
#ifndef DL_TENSOR_CHOICES_H
#define DL_TENSOR_CHOICES_H

#include "base/rule.h"
#include "tensor/record.h"

struct dl_plan_choice {
	const char *pattern; /* fnmatch */
	int skip;	     /* leave the tensor local */
	enum dl_rule rule;   /* when not skipped */
	const char *alias;   /* for DL_ALIAS */
	int matched;	     /* set by the plan: a tensor has such a name */
};

struct dl_choices {
	struct dl_plan_choice *choice;
	uint32_t *pattern, *name; /* indices: in order; sorted by name */
	size_t patterns, names;
};

void dl_choices_init(
	struct dl_choices *c, struct dl_plan_choice *choice, size_t n);
void dl_choices_release(struct dl_choices *c);

/* The last that matches, or NULL. */
const struct dl_plan_choice *dl_choices_find(
	const struct dl_choices *c, const struct dl_string *name);

#endif
