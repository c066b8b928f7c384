/*
 * How the tensors of a layout are merged: the words of its last column. A word
 * that layouts (above) and merging (below) share, so it lives here.
 */
#ifndef DL_BASE_RULE_H
#define DL_BASE_RULE_H

#include <stddef.h>

enum dl_rule {
	DL_RDA,	  /* radial-directional averaging, outer optimizer */
	DL_MEAN,  /* weighted mean, outer optimizer */
	DL_STAT,  /* weighted mean, no outer optimizer: running statistics */
	DL_LAST,  /* the heaviest contributor's: integers */
	DL_ALIAS, /* tied to another tensor, which is merged instead */
	DL_RULES
};

/* "rda", "mean", "stat", "last", "alias". */
const char *dl_rule_name(enum dl_rule rule);

/* The rule that the n bytes at s name, or -1 when they name none. */
int dl_rule_parse(const char *s, size_t n);

#endif
