/*
 * The core's saved state as a JSON object, as HEAD and tapes hold it
 * (dl-store(5)).
 */
#ifndef DL_STATE_SAVED_H
#define DL_STATE_SAVED_H

#include "base/json.h"
#include "sync/sync.h"

enum { DL_FRAGMENTS_MAX = 1 << 20 }; /* what a reader accepts */

/* Appends the object to out; space goes before each fragment and learner, a
 * line each for the eyes of people where lines do not count. */
void dl_saved_write(
	struct dl_buf *out, const struct dl_sync_saved *v, const char *space);

/*
 * Reads the object whose brace was just taken into v, whose content is replaced
 * without being released: 0, or 65 in j's error. dl_sync_saved_release
 * afterwards, in both cases.
 */
int dl_saved_parse(struct dl_json *j, struct dl_sync_saved *v);

#endif
