/*
 * Replaying a tape: a core made again by the events that made it, for those who
 * go on from there.
 */
#ifndef DL_STATE_REPLAY_H
#define DL_STATE_REPLAY_H

#include "state/tape.h"

/* Who looks on; each of the functions may be NULL. */
struct dl_replay_watcher {
	void *ctx;
	/* A new core: what was before counts no more. */
	void (*start)(void *ctx, const struct dl_tape_start *s);
	/* Does the event count? One that does not, core never hears of. */
	int (*counts)(void *ctx, const struct dl_sync *core,
		const struct dl_sync_event *ev);
	/* An event that counts, before the core gets it. */
	void (*event)(void *ctx, const struct dl_sync_event *ev);
	/* What the core then did. */
	void (*action)(void *ctx, const struct dl_sync_action *a);
};

struct dl_replay {
	struct dl_sync *core; /* as the last start and its events made it */
	struct dl_tape_start start;
	uint64_t events; /* since that start */
	int64_t now;	 /* of the last line */
};

/*
 * Reads r to its end: 0, or what dl_tape_next said, or 65 when there is not
 * even a start. Half a line at the end is passed over. dl_replay_release
 * afterwards, in any case.
 */
int dl_replay(struct dl_replay *out, struct dl_tape_reader *r,
	const struct dl_replay_watcher *w, struct dl_err *e);
void dl_replay_release(struct dl_replay *v); /* a core taken away is NULL */

#endif
