/*
 * Files: whole reads and writes, and output that appears whole or not at all
 * (temporary name, fsync, rename, fsync of the folder).
 */
#ifndef DL_BASE_FILE_H
#define DL_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

/* Bytes read, short only at the end of the file; -1 with errno. */
ssize_t dl_read_full(int fd, void *buf, size_t n);
ssize_t dl_pread_full(int fd, void *buf, size_t n, uint64_t offset);
/* 0, or -1 with errno. */
int dl_write_full(int fd, const void *buf, size_t n);

/* Opens for reading; 66 when there is none, 74 else. "-" is not special. */
int dl_open_read(const char *path, int *fd, struct dl_err *e);

/* The whole file ("-" is standard input; what zstd compressed is decompressed)
 * into out (cleared first), refused (65) above limit bytes. */
int dl_read_file(const char *path, size_t limit, struct dl_buf *out,
	struct dl_err *e);

/* A file being written beside its final name. */
struct dl_output {
	int fd;
	char *path, *temp; /* owned; NULL when closed */
};
#define DL_OUTPUT_INIT {-1, NULL, NULL}

/*
 * Begins path; "-" writes to standard output. 73 when it cannot be made. The
 * temporary file is removed by dl_output_abort, at exit, and by a fatal signal
 * when the program called dl_output_on_signal.
 */
int dl_output_open(struct dl_output *o, const char *path, struct dl_err *e);
int dl_output_write(struct dl_output *o, const void *p, size_t n,
	struct dl_err *e);
/* Makes it durable under its name; 74 on failure, nothing left behind. */
int dl_output_commit(struct dl_output *o, struct dl_err *e);
void dl_output_abort(struct dl_output *o); /* no-op when closed */
/* Could path be made? For those who work long before they write: 73 if not. */
int dl_output_check(const char *path, struct dl_err *e);
/* For filters: SIGINT, SIGTERM, SIGHUP, SIGPIPE clean up, then kill. */
void dl_output_on_signal(void);

/* One call: open, write, commit. */
int dl_write_file(const char *path, const void *p, size_t n,
	struct dl_err *e);

int dl_fsync_folder(const char *folder, struct dl_err *e);
int dl_make_folder(const char *path, struct dl_err *e); /* fine if there */

#endif
