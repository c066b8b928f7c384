/*
 * The records of one file, found by their headers: data stay where they are
 * and are read with pread. What cannot be sought is copied to an unlinked
 * temporary file first ($TMPDIR), so that memory is headers, not models.
 */
#ifndef DL_TENSOR_RECORDS_H
#define DL_TENSOR_RECORDS_H

#include "base/err.h"
#include "tensor/record.h"

struct dl_records_entry {
	struct dl_header header;
	uint64_t at; /* where its data begin in the file */
};

struct dl_records {
	char *path; /* "standard input" for "-" */
	int fd;
	uint64_t size; /* of the file */
	struct dl_records_entry *record;
	size_t records;
};
#define DL_RECORDS_INIT                                                        \
	{                                                                      \
		NULL, -1, 0, NULL, 0                                           \
	}

/*
 * Opens path ("-" is standard input) and reads every header. 65 names the
 * record and the fact; an empty file is 65 too. Close it also after a failure.
 */
int dl_records_open(struct dl_records *r, const char *path, struct dl_err *e);
/* The same of a descriptor, owned from here on; name is for messages. */
int dl_records_open_fd(struct dl_records *r, const char *name, int fd,
	struct dl_err *e);
/* For those who only look at headers: data cannot be read. A pipe is read to
 * its end, and what is in it dropped. */
int dl_records_open_headers(
	struct dl_records *r, const char *path, struct dl_err *e);
void dl_records_close(struct dl_records *r);

/* n bytes from byte at of the file into buf; 65 when the file is shorter. */
int dl_records_read(const struct dl_records *r, uint64_t at, void *buf,
	size_t n, struct dl_err *e);

/*
 * Calls f with each header as it is met, without keeping any: for looking at
 * a pipe of any length. Data are skipped: sought over where that is possible,
 * else read and dropped. f's code other than 0 ends the walk.
 */
int dl_records_walk(const char *path,
	int (*f)(void *ctx, uint64_t record, const struct dl_header *h,
		struct dl_err *e),
	void *ctx, struct dl_err *e);

#endif
