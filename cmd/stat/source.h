/*
 * Where figures come from: a tape, as far as it has been written.
 */
#ifndef CMD_STAT_SOURCE_H
#define CMD_STAT_SOURCE_H

#include "state/stat.h"

struct source {
	/* private */
	const char *path; /* of a tape; NULL: standard input */
	const char *place;
	int fd;
	struct dl_tape_reader reader;
	struct dl_tape_line line;
	struct dl_stat stat;
};

/* The tape at path, or "-": 66 when there is none. */
int source_open(struct source *s, const char *path, struct dl_err *e);
void source_close(struct source *s);

/* The figures as of now, valid until the next call; NULL with e set: 65 when
 * there is no start of a run, or what is there is no tape; 74. */
const struct dl_stat *source_look(struct source *s, struct dl_err *e);
/* Did the tape end inside a line? */
int source_torn(const struct source *s);

#endif
