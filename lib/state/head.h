/*
 * HEAD: the one small file that says what a store holds (dl-store(5)).
 */
#ifndef DL_STATE_HEAD_H
#define DL_STATE_HEAD_H

#include "base/hash.h"
#include "base/mem.h"
#include "state/store.h"

/* The files of a fragment: global/P.E.N, momentum/P.E.N, perhaps error/P.E.N.
 */
enum { DL_STORE_GLOBAL, DL_STORE_MOMENTUM, DL_STORE_ERROR, DL_STORE_KINDS };

/* Their version is that of the merge that made them; the epoch may have risen
 * since. */
struct dl_head_files {
	struct dl_version made;
	int error;				/* there is one */
	char hash[DL_STORE_KINDS][DL_HASH_HEX]; /* BLAKE2b; "": not known */
};

/* Their folders, and what HEAD calls them. */
extern const char *const dl_store_kinds[DL_STORE_KINDS];

/* How many there are; the error is the last. */
int dl_head_kinds(const struct dl_head_files *f);

/* Bytes of HEAD that are read; a writer stays far below. */
enum { DL_HEAD_LIMIT = 1 << 28 };

struct dl_head {
	struct dl_store_run run;
	char layout[DL_HASH_HEX];
	struct dl_sync_saved saved;
	struct dl_head_files *files; /* saved.fragments of them */
};

/* The whole text of HEAD, appended to out. */
void dl_head_write(struct dl_buf *out, const struct dl_head *h);

/* Its inverse: 0, or 65 with the fact. dl_head_release in both cases. */
int dl_head_parse(
	struct dl_head *h, const void *text, size_t n, struct dl_err *e);
void dl_head_release(struct dl_head *h);

#endif
