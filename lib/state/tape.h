/*
 * Tapes: the input events of the syncer's core as lines of JSON (dl-tape(5)).
 *
 * A start line says how the core was made, with the saved state it goes on
 * from; the events that follow it, given to such a core, make the same
 * decisions again. A tape that outlives restarts has one start line a start.
 */
#ifndef DL_STATE_TAPE_H
#define DL_STATE_TAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/input.h"
#include "base/mem.h"
#include "merge/alike.h"
#include "state/trail.h"
#include "sync/sync.h"

struct dl_tape_start {
	char run[DL_NAME_MAX + 1];
	char layout[DL_HASH_HEX];
	struct dl_sync_config config;
	int restored;		    /* by dl_sync_restore from saved */
	struct dl_sync_saved saved; /* all zero for a new run */
};

/* What a merge came to: the BLAKE2b of its files, both or none, and the core's
 * trail up to it; strings are empty where a tape says nothing. How alike
 * its pushes were decides nothing. */
struct dl_tape_made {
	char values[DL_HASH_HEX], momentum[DL_HASH_HEX];
	char trail[DL_TRAIL_HEX];
	struct dl_alike alike;
};

enum dl_tape_kind { DL_TAPE_START, DL_TAPE_EVENT };

struct dl_tape_line {
	enum dl_tape_kind kind;
	int64_t wall, now;	    /* nanoseconds: since 1970, monotonic */
	struct dl_tape_start start; /* of DL_TAPE_START */
	struct dl_sync_event event; /* of DL_TAPE_EVENT */
	size_t versions;	    /* event.versions holds as many */
	struct dl_tape_made made;   /* of DL_EV_MERGED */
	/* private: what event points to */
	char learner[DL_NAME_MAX + 1];
	struct dl_version *version;
};

/*
 * A line, newline included, appended to out, and its inverse: numbers come
 * back exactly, NaN and infinities too. fragments is P (for JOIN's versions);
 * made is of DL_EV_MERGED, and NULL when nobody knows.
 * Parsing refuses (65) keys and kinds it does not know, and l needs
 * dl_tape_line_release afterwards, whatever it returned.
 */
void dl_tape_write_start(struct dl_buf *out, const struct dl_tape_start *s,
	int64_t wall, int64_t now);
void dl_tape_write_event(struct dl_buf *out, const struct dl_sync_event *ev,
	const struct dl_tape_made *made, uint32_t fragments, int64_t wall);
int dl_tape_parse_line(
	struct dl_tape_line *l, const char *text, size_t n, struct dl_err *e);
void dl_tape_line_release(struct dl_tape_line *l);

/* A tape being written. */
struct dl_tape;

/* Opens path to append to (a torn last line is cut off) and writes the start
 * line. 73 or 74; *t is NULL on failure. */
int dl_tape_open(struct dl_tape **t, const char *path,
	const struct dl_tape_start *s, int64_t wall, int64_t now,
	struct dl_err *e);
/* Opens path to go on with the core that its last start line and the events
 * after it made (dl_replay): 66 when there is none. */
int dl_tape_continue(struct dl_tape **t, const char *path, uint32_t fragments,
	struct dl_err *e);
/* Notes an event, in memory: never fails, never waits. */
void dl_tape_event(struct dl_tape *t, const struct dl_sync_event *ev,
	const struct dl_tape_made *made, int64_t wall);
/*
 * Writes what was noted in one write(2). 74 when that fails: the lines are
 * kept for the next flush, up to DL_TAPE_BACKLOG bytes; past that the tape ends
 * there (an event missing in the middle would make it lie) and every
 * flush says so.
 */
enum { DL_TAPE_BACKLOG = 1 << 24 };
int dl_tape_flush(struct dl_tape *t, struct dl_err *e);
/* The same, and what was written is durable when it returns 0: for those who
 * go on from their tape. */
int dl_tape_sync(struct dl_tape *t, struct dl_err *e);
/* Goes on in the file of its name, which is made when the old one has been
 * moved away: the old one and then the new one are the tape. On failure (73,
 * 74) it goes on where it was. */
int dl_tape_reopen(struct dl_tape *t, struct dl_err *e);
int dl_tape_close(struct dl_tape *t, struct dl_err *e); /* flushes */

/* A tape being read, from a file or a pipe. */
struct dl_tape_reader {
	uint64_t line; /* number of the last line, from 1 */
	int torn;      /* the input ended inside a line, which was ignored */
	/* private */
	const char *place;
	struct dl_input in;
	struct dl_buf buf;
	size_t at;
	uint32_t fragments;
	int64_t now;
};

/* place names the input in messages and must outlive r. */
void dl_tape_reader_init(struct dl_tape_reader *r, int fd, const char *place);
void dl_tape_reader_release(struct dl_tape_reader *r);
/*
 * The next line into l (zeroed before the first call; reused and released by
 * the caller at the end): 0, DL_NO at the end, 65 with place and line number,
 * or 74. The first line must be a start, and time must not fall after it.
 * After the end it may be called again, for what has been written since.
 */
int dl_tape_next(
	struct dl_tape_reader *r, struct dl_tape_line *l, struct dl_err *e);
/* At its end: the tape goes on in another file. */
void dl_tape_reader_turn(struct dl_tape_reader *r, int fd);

#endif
