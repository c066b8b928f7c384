/*
 * The files of a spool (link/spool.h): found without following links, read
 * with limits, put by rename. Others write there too, so nothing that is found
 * is trusted, and what is not there this time may be there the next.
 *
 * A path is relative to the spool, such as "new/ann/24.1.3.HASH"; its parts
 * hold no "." or "..", which is the caller's care.
 */
#ifndef DL_LINK_SPOOL_FILE_H
#define DL_LINK_SPOOL_FILE_H

#include <sys/stat.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

/* The spool's folder; 66 when there is none, 74 else. Close *fd. */
int dl_spool_open(const char *path, int *fd, struct dl_err *e);
/* A folder in it, for listing and for owners. 66, 65 when it is something
 * else, 74. Close *fd. */
int dl_spool_open_folder(
	int spool, const char *path, int *fd, struct dl_err *e);
/* Makes a folder in it, whose parents are there; fine when it is there. */
int dl_spool_make_folder(int spool, const char *path, struct dl_err *e);

/* A regular file, for reading; st may be NULL. 66 when it is not there, 65
 * when it is something else, 74. Close *fd. */
int dl_spool_open_file(int spool, const char *path, int *fd, struct stat *st,
	struct dl_err *e);
/* The same with a shared lock, which keeps others from removing it until *fd
 * is closed; it is known to have the name still. */
int dl_spool_open_locked(int spool, const char *path, int *fd, struct stat *st,
	struct dl_err *e);
/* Removes a file unless somebody has a shared lock on it; *removed says
 * whether it is gone. */
int dl_spool_collect(
	int spool, const char *path, int *removed, struct dl_err *e);

/* The whole of a small file into out (cleared first); 65 above limit bytes. */
int dl_spool_read(int spool, const char *path, size_t limit, struct dl_buf *out,
	struct dl_err *e);
/* The BLAKE2b of size bytes of fd from its beginning; 65 when there are not
 * exactly so many. */
int dl_spool_hash(
	int fd, uint64_t size, char hash[DL_HASH_HEX], struct dl_err *e);

/*
 * Puts a file: writes the parts to tmp/TEMP, fsync, rename to path, fsync of
 * the folder; the content is there whole or not at all. A leftover tmp/TEMP is
 * removed, so one name has one writer. 73 or 74, and no file left behind.
 */
int dl_spool_put(int spool, const char *temp, const char *path,
	const struct iovec *part, size_t parts, struct dl_err *e);
/* Renames a file, without any promise that it lasts; 66 or 74. */
int dl_spool_move(
	int spool, const char *from, const char *to, struct dl_err *e);
/* Removes a file; fine when it is not there, or is a folder, which stays. */
int dl_spool_remove(int spool, const char *path, struct dl_err *e);

/*
 * Holds a learner's name, making new/NAME if need be: *fd is -1 before, or what
 * an earlier call gave, which is known to hold it still or is replaced, as when
 * the folder was mounted anew. 77 with who has the name; 66 when there is no
 * new/; 73 or 74.
 */
int dl_spool_lock(int spool, const char *name, int *fd, struct dl_err *e);
void dl_spool_unlock(int *fd);

/* Names in a folder, in byte order, those with a dot in front left out. */
struct dl_spool_names {
	char **name;
	size_t n;
};
/* 66 when there is no such folder; e may then be passed over. */
int dl_spool_list(int spool, const char *path, struct dl_spool_names *out,
	struct dl_err *e);
void dl_spool_names_release(struct dl_spool_names *v);

#endif
