/*
 * How learners apply new values, as --apply has it.
 */
#ifndef CMD_LEARN_APPLY_H
#define CMD_LEARN_APPLY_H

#include "learn/learn.h"

/* "overwrite", "carry" or "blend:A", A from 0 to 1; -1 when s is none. */
int learn_parse_apply(const char *s, enum dl_apply *apply, double *alpha);

#endif
