/*
 * Where figures come from: a tape, as far as it has been written, or a live
 * syncer.
 */
#ifndef CMD_STAT_SOURCE_H
#define CMD_STAT_SOURCE_H

#include "link/address.h"
#include "state/stat.h"

struct source {
	/* private */
	const struct dl_address *from; /* a syncer; NULL: a tape, */
	enum dl_insecure allowed;
	const char *path; /* which is there; NULL: standard input */
	const char *place;
	int fd;
	struct dl_tape_reader reader;
	struct dl_tape_line line;
	struct dl_stat stat;
};

/* The tape at path, or "-": 66 when there is none. */
int source_open(struct source *s, const char *path, struct dl_err *e);
/* The syncer at a, which stays until the end. */
void source_open_live(
	struct source *s, const struct dl_address *a, enum dl_insecure allowed);
void source_close(struct source *s);

/* The figures as of now, valid until the next call; NULL with e set: 65 when
 * there is no start of a run, or what is there is no tape; 74; of a syncer as
 * live_fetch has it. */
const struct dl_stat *source_look(struct source *s, struct dl_err *e);
/* Did the tape end inside a line? */
int source_torn(const struct source *s);

#endif
