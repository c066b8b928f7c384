/*
 * Files: whole reads and writes.
 */
#ifndef DL_BASE_FILE_H
#define DL_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/output.h"

/* Bytes read, short only at the end of the file; -1 with errno. */
ssize_t dl_read_full(int fd, void *buf, size_t n);
ssize_t dl_pread_full(int fd, void *buf, size_t n, uint64_t offset);
/* 0, or -1 with errno. */
int dl_write_full(int fd, const void *buf, size_t n);
int dl_pwrite_full(int fd, const void *buf, size_t n, uint64_t offset);

/* Opens for reading; 66 when there is none, 74 else. "-" is not special. */
int dl_open_read(const char *path, int *fd, struct dl_err *e);

/* The whole file ("-" is standard input; what zstd compressed is decompressed)
 * into out (cleared first), refused (65) above limit bytes. */
int dl_read_file(const char *path, size_t limit, struct dl_buf *out,
	struct dl_err *e);

/* One call: open, write, commit (base/output.h). */
int dl_write_file(const char *path, const void *p, size_t n,
	struct dl_err *e);
/* A file that nobody else may read (mode 0600, whatever the umask), whole or
 * not at all; 73 when that name is taken, by anything. */
int dl_write_new(const char *path, const void *p, size_t n, struct dl_err *e);

int dl_fsync_folder(const char *folder, struct dl_err *e);
int dl_fsync_parent(const char *path, struct dl_err *e); /* its folder */
/* Makes it durably; fine if it is there. 73 or 74. */
int dl_make_folder(const char *path, struct dl_err *e);
/* rename(2), but a rename that worked is not taken for one that did not: 0, or
 * -1 with errno. */
int dl_rename(const char *from, const char *to);

#endif
