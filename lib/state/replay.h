/*
 * Replaying a tape: a core made again by the events that made it, for those who
 * go on from there, and for those who check that it decides the same.
 */
#ifndef DL_STATE_REPLAY_H
#define DL_STATE_REPLAY_H

#include "state/tape.h"

struct dl_replay {
	struct dl_sync *core; /* as the last start and its events made it */
	struct dl_trail trail;
	struct dl_tape_start start;
	uint64_t events; /* since that start */
	uint64_t line;	 /* number of the last one read */
	int64_t now;	 /* of the last line */
};

/* Who looks on; each of the functions may be NULL. Those that take an error may
 * end the replay with a code other than 0. */
struct dl_replay_watcher {
	void *ctx;
	/* A start, while the core is still that of the events before it (NULL
	 * at first): what was before counts no more. */
	int (*start)(
		void *ctx, const struct dl_tape_start *s, struct dl_err *e);
	/* Does the event count? Of a push that does not, core hears that it
	 * came and is not finite, and others hear nothing; and as soon as
	 * somebody chooses, trails are not compared. */
	int (*counts)(void *ctx, const struct dl_sync *core,
		const struct dl_sync_event *ev);
	/* An event that counts, before the core gets it. */
	int (*event)(
		void *ctx, const struct dl_tape_line *line, struct dl_err *e);
	/* What the core then did. */
	void (*action)(void *ctx, const struct dl_sync_action *a);
};

/*
 * Reads r to its end: 0; what dl_tape_next or a watcher said, with place and
 * line; 65 when there is not even a start; or DL_NO, "PLACE: line N: fragment
 * P, version E.N: ...", when the tape tells of a merge that the core has not
 * decided on, or of a core that had decided otherwise before it. Half a line at
 * the end is passed over. dl_replay_release afterwards, in any case.
 */
int dl_replay(struct dl_replay *out, struct dl_tape_reader *r,
	const struct dl_replay_watcher *w, struct dl_err *e);
void dl_replay_release(struct dl_replay *v); /* a core taken away is NULL */

#endif
