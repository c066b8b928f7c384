/*
 * The values that updates start from: of each fragment's newest global, bit for
 * bit as the syncer has them. An anchor is other values as soon as something
 * has been pushed or blended.
 */
#ifndef CMD_LEARN_BASE_H
#define CMD_LEARN_BASE_H

#include "cmd/learn/weights.h"

struct base {
	float *values; /* NULL: none have come */
	struct dl_version version;
	int asked; /* for values */
};

/* Values have come, in whatever way; does nothing in runs without updates. */
void base_came(struct weights *w, uint32_t p, struct dl_version version,
	const float *values);

#endif
