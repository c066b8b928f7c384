/*
 * Output that appears whole or not at all (temporary name, fsync, rename, fsync
 * of the folder), compressed by zstd where that is asked for. Threads may
 * write different outputs at once.
 */
#ifndef DL_BASE_OUTPUT_H
#define DL_BASE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A file being written beside its final name. */
struct dl_output {
	int fd; /* of a new file what is written can be read again */
	char *path; /* owned; NULL for standard output and when closed */
	/* private */
	struct dl_output_temp *temp;
	struct dl_output_zstd *zstd;
	size_t unsent; /* bytes that the disk has not been asked to take */
};
#define DL_OUTPUT_INIT                                                         \
	{                                                                      \
		-1, NULL, NULL, NULL, 0                                        \
	}

/*
 * Begins path; "-" writes to standard output, and what is there and no file (a
 * device, a pipe) is written to as it is. 73 when it cannot be made. The
 * temporary file is removed by dl_output_abort, at exit, and by a fatal signal
 * when the program called dl_output_on_signal.
 */
int dl_output_open(struct dl_output *o, const char *path, struct dl_err *e);
/* Begins on an open descriptor, written to as it is and left open. */
void dl_output_on(struct dl_output *o, int fd);
/* Before anything is written: what follows is one zstd frame of that level, 1
 * to 19, with a checksum. Level 0 is no compression. */
void dl_output_compress(struct dl_output *o, int level);
int dl_output_write(
	struct dl_output *o, const void *p, size_t n, struct dl_err *e);
/* Of n bytes of the file fd, from byte at on, writes as many as the system
 * copies without our reading them, and says how many; the rest, perhaps all, is
 * to be read and written. */
uint64_t dl_output_copy(struct dl_output *o, int fd, uint64_t at, uint64_t n);
/* Where its bytes are until they have their name; NULL: nowhere to be read. */
const char *dl_output_temp(const struct dl_output *o);
/* Puts all of it on the disk, so that only its name is missing: a set of many
 * needs no more than one open file. */
int dl_output_finish(struct dl_output *o, struct dl_err *e);
/* The same of n outputs, all of which the disk begins with at once. */
int dl_output_finish_all(struct dl_output *o, size_t n, struct dl_err *e);
/* Makes it durable under its name; 74 on failure, nothing left behind. */
int dl_output_commit(struct dl_output *o, struct dl_err *e);
/*
 * The same of n > 0 outputs in one folder, which get their names when all of
 * them are on the disk, the last when the others have theirs: readers look for
 * that one. On failure none is left behind.
 */
int dl_output_commit_all(struct dl_output *o, size_t n, struct dl_err *e);
void dl_output_abort(struct dl_output *o); /* no-op when closed */
/* Is that what follows the final name in the temporary one of a process that
 * was killed, and left it? Of this machine: others' look dead. */
int dl_output_is_left(const char *end);
/* Could path be made? For those who work long before they write: 73 if not. */
int dl_output_check(const char *path, struct dl_err *e);

/* A folder that outputs are made in. */
struct dl_output_folder {
	struct dl_output_temp *made; /* private; NULL when it was there */
};
/* 73 when it is not there and cannot be made. One that was made here goes away
 * again by close, at exit or by a signal as above, if nothing is in it. */
int dl_output_folder_open(
	struct dl_output_folder *f, const char *path, struct dl_err *e);
void dl_output_folder_close(struct dl_output_folder *f);

/* For filters: SIGINT, SIGTERM, SIGHUP, SIGPIPE clean up, then kill. */
void dl_output_on_signal(void);

#endif
