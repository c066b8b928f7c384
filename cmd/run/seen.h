/*
 * When files were first seen as they are, from pass to pass: what deadlines
 * run from, since the clocks of those who write them are their own.
 */
#ifndef CMD_RUN_SEEN_H
#define CMD_RUN_SEEN_H

#include "base/mem.h"

enum { SEEN_MARK = 64 };

struct seen_file {
	char *path;
	char mark[SEEN_MARK]; /* changes when the file does */
	int64_t at;
	int again; /* met in this pass too */
};

struct seen {
	char *path;
	struct seen_file *file;
	size_t files, sorted; /* those from before are in byte order */
};

/* What the file at path, owned from here on, says; nothing when it is not
 * there or damaged: then time begins anew. */
void seen_open(struct seen *s, char *path);
/* Since when that file has been seen with that mark (no tabs, no newlines);
 * since now, when it was not. Once a pass and file. */
int64_t seen_since(
	struct seen *s, const char *path, const char *mark, int64_t now);
/* Keeps what was met in this pass. A failure costs no more than time. */
void seen_save(struct seen *s);
void seen_release(struct seen *s);

#endif
