/*
 * The trail of a core: all that it has decided since it was made, as one short
 * hash (dl-tape(5)). Cores that were told the same have the same trail, so a
 * tape that carries it can be checked without the bytes of any push.
 */
#ifndef DL_STATE_TRAIL_H
#define DL_STATE_TRAIL_H

#include "base/hash.h"
#include "sync/sync.h"

enum { DL_TRAIL_HEX = 17 };

struct dl_trail {
	struct dl_hash hash;
};

void dl_trail_init(struct dl_trail *t);
/* The next action of the core, while its pointers are valid. */
void dl_trail_add(struct dl_trail *t, const struct dl_sync_action *a);
/* What it is so far: 16 lower-case hexadecimal digits and a NUL. */
void dl_trail_hex(const struct dl_trail *t, char out[DL_TRAIL_HEX]);

#endif
